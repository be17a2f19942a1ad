"""The Celery task that advances runs, every second while any has not ended, and the work of simulated teams."""

from celery import shared_task

from hekla.apps import due_work
from hekla.apps.demonstrations import selectors, services, workload
from hekla.apps.demonstrations.wake import advancing
from hekla.lib import clock

_AGAIN_SECONDS = 1.0


@shared_task(name="hekla.demonstrations.advance")
def advance() -> None:
    """Advance all runs that have not ended, and the simulated teams."""
    services.advance_all(now=clock.now())
    next_at = workload.advance(now=clock.now())
    if selectors.in_progress().exists():
        advancing.after(_AGAIN_SECONDS)
    else:
        advancing.at(next_at, now=clock.now())


due_work.declare("hekla.demonstrations.advance", selectors.advance_work)
