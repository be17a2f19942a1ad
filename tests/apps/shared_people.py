"""The people of all tests of a module whose tests need no commits: creating them takes longer than a page."""

from collections.abc import Iterator
from copy import deepcopy

import pytest
from pytest_django import DjangoDbBlocker
from tests.apps.conftest import People, make_people
from tests.support.shared_rows import rolled_back, undone_test


@pytest.fixture(scope="module")
def shared_people(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[People]:
    """The rows, in a transaction around all tests."""
    with django_db_blocker.unblock(), rolled_back():
        yield make_people()


@pytest.fixture
def db(shared_people: People) -> Iterator[None]:
    with undone_test():
        yield


@pytest.fixture
def people(db: None, shared_people: People) -> People:
    """Copies of the objects, because a test changes them."""
    return deepcopy(shared_people)
