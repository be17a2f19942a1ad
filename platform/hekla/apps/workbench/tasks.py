"""The Celery task that records the ends of sessions whose pods have ended. They have no effect by then."""

from celery import shared_task

from hekla.apps.workbench import services
from hekla.lib import clock


@shared_task(name="hekla.workbench.follow_pods")
def follow_pods() -> None:
    """Record the ends of sessions with pods that have ended."""
    services.end_with_pods(now=clock.now())
