"""The Celery task that records the ends of sessions whose pods have ended. They have no effect by then."""

from celery import shared_task

from hekla.apps import due_work
from hekla.apps.workbench import selectors, services
from hekla.lib import clock


@shared_task(name="hekla.workbench.follow_pods")
def follow_pods() -> None:
    """Record the ends of sessions with pods that have ended."""
    services.end_with_pods(now=clock.now())


due_work.declare("hekla.workbench.follow_pods", selectors.session_work)
