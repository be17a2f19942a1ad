"""Wakes the task that mails invitations, when the next letter is due."""

from django.db import transaction

from hekla.apps.wakeups import Wakeup

sending = Wakeup("hekla.invitations.send")


def send_soon() -> None:
    """Wake the task once the current transaction is committed."""
    transaction.on_commit(sending.soon, robust=True)
