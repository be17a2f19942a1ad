"""The Celery task that records the ends of invitations and recordings, and deletes old ones."""

from celery import shared_task

from hekla.apps.sharing import services
from hekla.lib import clock


@shared_task(name="hekla.sharing.tidy")
def tidy() -> None:
    """Record what has expired, and delete what is too old or too much."""
    services.tidy_guests(now=clock.now())
    services.tidy_recordings(now=clock.now())
