"""Celery lets runs go on; the beat asks each second, so that a message that is lost costs a second."""

from celery import shared_task

from hekla.apps.demonstrations import services
from hekla.lib import clock


@shared_task(name="hekla.demonstrations.advance")
def advance() -> None:
    """All runs that are not over."""
    services.advance_all(now=clock.now())
