"""Celery starts what is due; the beat asks each second, so that a message that is lost costs a second."""

from celery import shared_task

from hekla.apps.schedules import services
from hekla.lib import clock


@shared_task(name="hekla.schedules.start_due")
def start_due() -> None:
    """All schedules whose time has come."""
    services.start_due(now=clock.now())


@shared_task(name="hekla.schedules.tidy")
def tidy() -> None:
    """Finished jobs beyond what schedules keep."""
    services.tidy(now=clock.now())
