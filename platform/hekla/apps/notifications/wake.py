"""Wakes the tasks that follow the log and send: soon after an event, and when the next delivery is due."""

from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from hekla.apps.event_log.signals import recorded
from hekla.apps.wakeups import Wakeup

following = Wakeup("hekla.notifications.follow")
sending = Wakeup("hekla.notifications.send")


@receiver(recorded)
def after_commit(*, topics: set[str], **_kwargs: Any) -> None:  # noqa: ANN401
    """Wake the follower after an event of a job or a person."""
    if any(topic.startswith(("job:", "user:")) for topic in topics):
        following.soon()


def send_at(instant: datetime, *, now: datetime) -> None:
    """Wake the sender at that instant, once the current transaction is committed."""
    transaction.on_commit(partial(sending.at, instant, now=now), robust=True)
