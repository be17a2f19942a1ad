"""Wakes the task that records the ends of sessions, soon after an event of a job: a pod may have ended."""

from typing import Any

from django.dispatch import receiver

from hekla.apps.event_log.signals import recorded
from hekla.apps.wakeups import Wakeup

PAUSE_SECONDS = 3.0
ending = Wakeup("hekla.workbench.follow_pods", pause=PAUSE_SECONDS)


@receiver(recorded)
def after_commit(*, topics: set[str], **_kwargs: Any) -> None:  # noqa: ANN401
    """Wake the task after an event of a job."""
    if any(topic.startswith("job:") for topic in topics):
        ending.soon()
