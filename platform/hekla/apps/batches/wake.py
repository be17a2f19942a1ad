"""Wakes the task that reads metrics and ends batches: soon after an event of a job, while a batch is in progress."""

from typing import Any

from django.dispatch import receiver

from hekla.apps.batches import selectors
from hekla.apps.event_log.signals import recorded
from hekla.apps.wakeups import Wakeup

PAUSE_SECONDS = 3.0
following = Wakeup("hekla.batches.follow", pause=PAUSE_SECONDS)


@receiver(recorded)
def after_commit(*, topics: set[str], **_kwargs: Any) -> None:  # noqa: ANN401
    """Wake the task: a job of a batch may have started or ended."""
    if any(topic.startswith("job:") for topic in topics) and selectors.any_in_progress():
        following.soon()
