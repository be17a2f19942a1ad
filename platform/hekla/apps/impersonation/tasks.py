"""Celery ends what is overdue. It is not in force any more by then: this only writes it down."""

from celery import shared_task

from hekla.apps.impersonation import services
from hekla.lib import clock


@shared_task(name="hekla.acting.end_overdue")
def end_overdue() -> None:
    """All whose hour is over."""
    services.end_overdue(now=clock.now())
