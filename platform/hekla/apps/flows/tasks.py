"""Celery lets flows go on: soon after a job changed, and every second anyway, so that a lost message costs a second."""

from celery import shared_task

from hekla.apps.flows import services
from hekla.lib import clock


@shared_task(name="hekla.flows.advance")
def advance() -> None:
    """All flows that are not over."""
    services.advance_all(now=clock.now())
