"""The Celery task that mails invitations. Its message carries no facts: the letters are rows."""

from celery import shared_task

from hekla.apps import due_work
from hekla.apps.invitations import letters, selectors
from hekla.apps.invitations.wake import sending
from hekla.lib import clock


@shared_task(name="hekla.invitations.send")
def send() -> None:
    """Send the letters that are due, and schedule the next run."""
    letters.send_due(now=clock.now())
    sending.at(selectors.next_letter(), now=clock.now())


due_work.declare("hekla.invitations.send", selectors.send_work)
