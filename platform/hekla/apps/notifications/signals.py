"""What follows a commit that changed how much somebody has not read. Who misses it finds the same in the table."""

from functools import partial

from django.db import transaction
from django.dispatch import Signal

counted = Signal()
"""Sent with `person`, their id."""


def changed_for(person: int) -> None:
    """Send it once the present transaction is committed."""
    transaction.on_commit(partial(counted.send, sender=None, person=person), robust=True)
