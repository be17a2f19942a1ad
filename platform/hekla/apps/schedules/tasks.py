"""Celery starts what is due, when it is due."""

from celery import shared_task

from hekla.apps.schedules import selectors, services
from hekla.apps.schedules.wake import starting
from hekla.lib import clock


@shared_task(name="hekla.schedules.start_due")
def start_due() -> None:
    """All schedules whose time has come."""
    services.start_due(now=clock.now())
    starting.at(selectors.next_due(), now=clock.now())


@shared_task(name="hekla.schedules.tidy")
def tidy() -> None:
    """Finished jobs beyond what schedules keep."""
    services.tidy(now=clock.now())
