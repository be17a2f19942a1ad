"""The Celery tasks of alerts. Messages only wake them: the rules and the rows decide what happens."""

from threading import Lock

from celery import shared_task

from hekla.apps import due_work
from hekla.apps.alerts import selectors, services
from hekla.apps.alerts.wake import acting, evaluating
from hekla.lib import clock

_evaluates = Lock()


@shared_task(name="hekla.alerts.evaluate")
def evaluate() -> None:
    """Evaluate the rules, and schedule the next run if values change by themselves.

    One run at a time in this process: those that take long must not take all its threads.
    """
    if not _evaluates.acquire(blocking=False):
        evaluating.soon()  # the run that goes on may have read too early
        return
    try:
        evaluating.at(services.evaluate(now=clock.now()), now=clock.now())
    finally:
        _evaluates.release()


@shared_task(name="hekla.alerts.act")
def act() -> None:
    """Do what is due, and schedule the next run."""
    services.act_due(now=clock.now())
    acting.at(selectors.next_action(), now=clock.now())


@shared_task(name="hekla.alerts.tidy")
def tidy() -> None:
    """Delete old history."""
    services.tidy(now=clock.now())


due_work.declare("hekla.alerts.evaluate", selectors.evaluate_work)
due_work.declare("hekla.alerts.act", selectors.act_work)
due_work.declare("hekla.alerts.tidy", selectors.tidy_work)
