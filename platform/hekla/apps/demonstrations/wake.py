"""Wakes the task that advances demonstrations when one starts; after that the task wakes itself."""

from typing import Any

from django.dispatch import receiver

from hekla.apps.event_log.signals import recorded
from hekla.apps.wakeups import Wakeup

advancing = Wakeup("hekla.demonstrations.advance")


@receiver(recorded)
def after_commit(*, topics: set[str], **_kwargs: Any) -> None:  # noqa: ANN401
    """Wake the task when a demonstration has started or ended."""
    if any(topic.startswith("demonstration:") for topic in topics):
        advancing.soon()
