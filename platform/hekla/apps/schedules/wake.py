"""Wakes the task that starts schedules, at the next due time."""

from typing import Any

from django.dispatch import receiver

from hekla.apps.event_log.signals import recorded
from hekla.apps.wakeups import Wakeup
from hekla.lib import clock

starting = Wakeup("hekla.schedules.start_due")


@receiver(recorded)
def after_commit(*, topics: set[str], **_kwargs: Any) -> None:  # noqa: ANN401
    """Plan the next wakeup after a schedule was created or changed."""
    if any(topic.startswith("schedule:") for topic in topics):
        from hekla.apps.schedules import selectors  # noqa: PLC0415  (with job specs, which few commits need)

        starting.at(selectors.next_due(), now=clock.now())
