"""The Celery task that ends expired impersonations. They have no effect by then: the task only records their end."""

from celery import shared_task

from hekla.apps import due_work
from hekla.apps.impersonation import selectors, services
from hekla.lib import clock


@shared_task(name="hekla.impersonation.end_overdue")
def end_overdue() -> None:
    """End all expired impersonations."""
    services.end_overdue(now=clock.now())


due_work.declare("hekla.impersonation.end_overdue", selectors.end_work)
