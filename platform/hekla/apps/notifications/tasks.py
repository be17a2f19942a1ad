"""The Celery tasks of notifications. Messages only wake them: the log and the rows decide who is notified."""

from celery import shared_task

from hekla.apps import due_work
from hekla.apps.notifications import selectors, services
from hekla.apps.notifications.wake import following, sending
from hekla.lib import clock


@shared_task(name="hekla.notifications.follow")
def follow() -> None:
    """Notify of the events since the last run."""
    services.follow(now=clock.now())
    if selectors.is_behind():
        following.soon()


@shared_task(name="hekla.notifications.look")
def look() -> None:
    """Notify of long waits and coming deletions."""
    services.look(now=clock.now())


@shared_task(name="hekla.notifications.send")
def send() -> None:
    """Send the deliveries that are due, and schedule the next run."""
    services.send_due(now=clock.now())
    sending.at(selectors.next_delivery(), now=clock.now())


@shared_task(name="hekla.notifications.tidy")
def tidy() -> None:
    """Delete old notifications."""
    services.tidy(now=clock.now())


due_work.declare("hekla.notifications.follow", selectors.follow_work)
due_work.declare("hekla.notifications.look", selectors.look_work)
due_work.declare("hekla.notifications.send", selectors.send_work)
