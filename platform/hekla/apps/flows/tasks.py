"""The Celery task that advances flows: soon after a job changed, and every second while any has not ended."""

from celery import shared_task

from hekla.apps import due_work
from hekla.apps.flows import selectors, services
from hekla.apps.flows.wake import advancing
from hekla.lib import clock

_AGAIN_SECONDS = 1.0
"""Needed because port probes and retries are due without an event."""


@shared_task(name="hekla.flows.advance")
def advance() -> None:
    """Advance all flows that have not ended."""
    services.advance_all(now=clock.now())
    if selectors.any_in_progress():
        advancing.after(_AGAIN_SECONDS)


due_work.declare("hekla.flows.advance", selectors.advance_work)
