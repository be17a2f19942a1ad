"""Wakes up open pages: a message on a Valkey channel after each commit with new events.

The message is empty, or it has the topics that changed without an event, separated by spaces: a person's number of
unread notifications, the progress of pods that prepare, the metrics of jobs, or the measures.
"""

import logging
from collections.abc import Collection
from functools import cache
from typing import Any

from django.conf import settings
from django.dispatch import receiver
from redis import Redis
from redis.exceptions import RedisError

from hekla.apps.batches.selectors import batches_among
from hekla.apps.event_log.signals import recorded
from hekla.apps.job_metrics.signals import metrics_changed
from hekla.apps.jobs.signals import preparation_changed
from hekla.apps.measures.signals import rolled_up
from hekla.apps.notifications.signals import counted

log = logging.getLogger(__name__)
CHANNEL = "hekla:log"


@cache
def _valkey() -> Redis:
    return Redis.from_url(settings.VALKEY_URL, socket_timeout=0.5, socket_connect_timeout=0.5)


@receiver(recorded)
def after_commit(**_kwargs: Any) -> None:  # noqa: ANN401
    """Announce new events. A hub that misses the message reads the log within a second anyway."""
    _publish("")


@receiver(counted)
def after_count_change(person: int, **_kwargs: Any) -> None:  # noqa: ANN401
    """Announce a changed number of unread notifications. Pages that miss the message refresh it within a minute."""
    _publish(f"bell:{person}")


@receiver(preparation_changed)
def after_preparation(pods: Collection[int], **_kwargs: Any) -> None:  # noqa: ANN401
    """Announce the progress of pods, for example of the pulls of their images. Pages that miss it show the next."""
    _publish(" ".join(f"pod:{pod}" for pod in pods))


@receiver(metrics_changed)
def after_metrics(jobs: Collection[int], **_kwargs: Any) -> None:  # noqa: ANN401
    """Announce new metrics. Pages that miss the message show them after the next event."""
    topics = [f"metrics:{job}" for job in sorted(jobs)]
    _publish(" ".join([*topics, *(f"batch:{batch}" for batch in batches_among(jobs))]))


@receiver(rolled_up)
def after_roll_up(topic: str, **_kwargs: Any) -> None:  # noqa: ANN401
    """Announce new sums of measures. Dashboards that miss the message show them a minute later."""
    _publish(topic)


def _publish(message: str) -> None:
    try:
        _valkey().publish(CHANNEL, message)
    except (RedisError, OSError) as error:
        log.info("open pages will look by themselves: %s", error)


def is_reachable() -> bool:
    """Whether Valkey answers now."""
    try:
        return bool(_valkey().ping())
    except (RedisError, OSError):
        return False
