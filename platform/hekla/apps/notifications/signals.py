"""The signal after a commit that changed a person's unread count. A receiver that misses it can read the table."""

from functools import partial

from django.db import transaction
from django.dispatch import Signal

counted = Signal()
"""Sent with `person`, the id of the user."""


def changed_for(person: int) -> None:
    """Send `counted` once the current transaction is committed."""
    transaction.on_commit(partial(counted.send, sender=None, person=person), robust=True)
