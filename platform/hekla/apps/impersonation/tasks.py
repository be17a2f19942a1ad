"""The Celery task that ends expired impersonations. They have no effect by then: the task only records their end."""

from celery import shared_task

from hekla.apps.impersonation import services
from hekla.lib import clock


@shared_task(name="hekla.acting.end_overdue")
def end_overdue() -> None:
    """End all expired impersonations."""
    services.end_overdue(now=clock.now())
