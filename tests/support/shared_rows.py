"""Rows that all tests of a module share, because creating them takes longer than most tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.cache import cache, caches
from django.db import transaction


@contextmanager
def rolled_back() -> Iterator[None]:
    """A transaction that is undone at its end."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def undone_test() -> Iterator[None]:
    """Rolls back what a test changes, and forgets what an earlier one counted or cached of the same rows."""
    cache.clear()
    caches["frame"].clear()
    with rolled_back():
        yield
