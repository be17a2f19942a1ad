"""Wakes the task that reads metrics and ends batches, soon after an event of a job."""

from typing import Any

from django.dispatch import receiver

from hekla.apps.event_log.signals import recorded
from hekla.apps.wakeups import Wakeup

PAUSE_SECONDS = 3.0
following = Wakeup("hekla.job_metrics.follow", pause=PAUSE_SECONDS)


@receiver(recorded)
def after_commit(*, topics: set[str], **_kwargs: Any) -> None:  # noqa: ANN401
    """Wake the task: a pod may have started or ended."""
    if any(topic.startswith("job:") for topic in topics):
        following.soon()
