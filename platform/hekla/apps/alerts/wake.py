"""Wakes the evaluation of alert rules after events that can change a value, and the task that acts."""

from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from hekla.apps.event_log.signals import recorded
from hekla.apps.wakeups import Wakeup

evaluating = Wakeup("hekla.alerts.evaluate", pause=3.0)
acting = Wakeup("hekla.alerts.act")
_TOPICS = ("machines", "job:", "queues", "cluster:", "tenant:")


@receiver(recorded)
def after_commit(*, topics: set[str], **_kwargs: Any) -> None:  # noqa: ANN401
    """Evaluate soon after an event of nodes, jobs, queues, clusters or quotas."""
    if any(topic.startswith(_TOPICS) for topic in topics):
        evaluating.soon()


def evaluate_after_commit() -> None:
    """Evaluate once the current transaction is committed: a rule has changed."""
    transaction.on_commit(evaluating.soon, robust=True)


def act_at(instant: datetime, *, now: datetime) -> None:
    """Act at that instant, once the current transaction is committed."""
    transaction.on_commit(partial(acting.at, instant, now=now), robust=True)
