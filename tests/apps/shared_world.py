"""One world of the access tests for all tests of a module: creating it takes longer than most tests."""

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoDbBlocker
from tests.apps.access_world import World, make_world
from tests.support.shared_rows import rolled_back

from hekla.pages.login_sessions import middleware


@pytest.fixture(scope="module")
def shared_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """The world, in a transaction around all tests."""
    with django_db_blocker.unblock(), rolled_back():
        world = make_world()
        for cookies in world.signed_in.values():
            record_browser(world.browser(cookies))
        yield world


def record_browser(client: Client) -> None:
    """Record this login session, with a cheap request: later requests, which are rolled back, would each record it."""
    client.delete(reverse("home"))


@pytest.fixture
def db(shared_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Roll back what a test changes in the world. Its browsers stay recorded, however long the tests take."""
    monkeypatch.setattr(middleware, "_EVERY_SECONDS", 10**6)
    with rolled_back():
        yield
