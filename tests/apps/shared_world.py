"""One world of the access tests for all tests of a module: creating it takes longer than most tests."""

from collections.abc import Iterator

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker
from tests.apps.access_world import World, make_world


@pytest.fixture(scope="module")
def shared_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """The world, in a transaction around all tests."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield make_world()
        transaction.set_rollback(True)


@pytest.fixture
def db(shared_world: World) -> Iterator[None]:
    """Roll back what a test changes in the world."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
