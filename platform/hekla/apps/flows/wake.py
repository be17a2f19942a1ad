"""Wakes the task that advances flows: soon after an event of a job or a flow, while any flow is in progress."""

from typing import Any

from django.dispatch import receiver

from hekla.apps.event_log.signals import recorded
from hekla.apps.flows import selectors
from hekla.apps.wakeups import Wakeup

PAUSE_SECONDS = 0.2
advancing = Wakeup("hekla.flows.advance", pause=PAUSE_SECONDS)


_OF_NEW_JOBS = {"JobSubmitted", "JobPlaced"}


@receiver(recorded)
def after_commit(*, topics: set[str], kinds: set[str], **_kwargs: Any) -> None:  # noqa: ANN401
    """Wake the task: a flow may have started, or may wait for the job of the event. None waits for a new job: if a
    flow submits one, an event of the flow comes with it.
    """
    if kinds <= _OF_NEW_JOBS:
        return
    if any(topic.startswith(("job:", "flow:")) for topic in topics) and selectors.any_in_progress():
        advancing.soon()
