"""Celery says when to look; who is told follows from the log and the rows alone."""

from celery import shared_task

from hekla.apps.notifications import selectors, services
from hekla.apps.notifications.wake import following, sending
from hekla.lib import clock


@shared_task(name="hekla.notifications.follow")
def follow() -> None:
    """What happened since the last time."""
    services.follow(now=clock.now())
    if selectors.is_behind():
        following.soon()


@shared_task(name="hekla.notifications.look")
def look() -> None:
    """What time has brought."""
    services.look(now=clock.now())


@shared_task(name="hekla.notifications.send")
def send() -> None:
    """What is due, by mail and webhook."""
    services.send_due(now=clock.now())
    sending.at(selectors.next_delivery(), now=clock.now())


@shared_task(name="hekla.notifications.tidy")
def tidy() -> None:
    """What people were told long ago."""
    services.tidy(now=clock.now())
