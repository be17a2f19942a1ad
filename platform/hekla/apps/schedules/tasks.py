"""Celery tasks that start due runs and delete old jobs."""

from celery import shared_task

from hekla.apps import due_work
from hekla.apps.schedules import selectors, services
from hekla.apps.schedules.wake import starting
from hekla.lib import clock


@shared_task(name="hekla.schedules.start_due")
def start_due() -> None:
    """Start all due runs, and plan the next wakeup."""
    services.start_due(now=clock.now())
    starting.at(selectors.next_due(), now=clock.now())


@shared_task(name="hekla.schedules.tidy")
def tidy() -> None:
    """Delete finished jobs beyond the history limits of schedules."""
    services.tidy(now=clock.now())


due_work.declare("hekla.schedules.start_due", selectors.start_work)
due_work.declare("hekla.schedules.tidy", selectors.tidy_work)
