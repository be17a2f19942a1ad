"""Celery lets runs go on, each second while any is under way."""

from celery import shared_task

from hekla.apps.demonstrations import selectors, services
from hekla.apps.demonstrations.wake import advancing
from hekla.lib import clock

_AGAIN_SECONDS = 1.0


@shared_task(name="hekla.demonstrations.advance")
def advance() -> None:
    """All runs that are not over."""
    services.advance_all(now=clock.now())
    if selectors.in_progress().exists():
        advancing.after(_AGAIN_SECONDS)
