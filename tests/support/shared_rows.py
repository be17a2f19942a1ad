"""Rows that all tests of a module share, because creating them takes longer than most tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.cache import cache
from django.db import transaction

from hekla.simulation import snapshot_cache


@contextmanager
def rolled_back() -> Iterator[None]:
    """A transaction that is undone at its end."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def undone_test() -> Iterator[None]:
    """Rolls back what a test changes, and forgets what an earlier one counted or cached of the same rows.

    Caches of clusters know by the number of the last event whether they are current, and a rollback repeats numbers.
    """
    cache.clear()
    snapshot_cache.forget_all()
    with rolled_back():
        yield
