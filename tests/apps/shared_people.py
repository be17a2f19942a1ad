"""The people of all tests of a module whose tests need no commits: creating them takes longer than a page."""

from collections.abc import Iterator
from copy import deepcopy

import pytest
from django.core.cache import cache, caches
from django.db import transaction
from pytest_django import DjangoDbBlocker
from tests.apps.conftest import People, make_people


@pytest.fixture(scope="module")
def shared_people(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[People]:
    """The rows, in a transaction around all tests."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield make_people()
        transaction.set_rollback(True)


@pytest.fixture
def db(shared_people: People) -> Iterator[None]:
    """Roll back what a test changes, and forget what it counted or cached of the same people."""
    cache.clear()
    caches["frame"].clear()
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def people(db: None, shared_people: People) -> People:
    """Copies of the objects, because a test changes them."""
    return deepcopy(shared_people)
