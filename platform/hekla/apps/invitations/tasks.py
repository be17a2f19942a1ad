"""Celery says when to look; what is to be mailed stands in rows."""

from celery import shared_task

from hekla.apps.invitations import letters, selectors
from hekla.apps.invitations.wake import sending
from hekla.lib import clock


@shared_task(name="hekla.invitations.send")
def send() -> None:
    """The letters that are due."""
    letters.send_due(now=clock.now())
    sending.at(selectors.next_letter(), now=clock.now())
