"""Celery lets flows go on: soon after a job changed, and each second while any is under way."""

from celery import shared_task

from hekla.apps.flows import selectors, services
from hekla.apps.flows.wake import advancing
from hekla.lib import clock

_AGAIN_SECONDS = 1.0
"""Ports are asked, and what was refused is tried again, without anything having happened."""


@shared_task(name="hekla.flows.advance")
def advance() -> None:
    """All flows that are not over."""
    services.advance_all(now=clock.now())
    if selectors.any_in_progress():
        advancing.after(_AGAIN_SECONDS)
