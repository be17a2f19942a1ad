"""Waking the controller: a message that says "look again" and carries no fact. Without it the watch looks anyway."""

import logging
from typing import Any

from django.dispatch import receiver
from kombu.exceptions import OperationalError

from hekla.apps.event_log.services import CONTROLLER
from hekla.apps.event_log.signals import recorded

log = logging.getLogger(__name__)
_OF_INTEREST = ("job:", "queue:", "cluster:")


@receiver(recorded)
def wake_after_commit(*, actor: str, topics: set[str], **_kwargs: Any) -> None:  # noqa: ANN401
    """Somebody changed something: the clusters concerned get a turn."""
    if actor == CONTROLLER.name:
        return
    clusters = {int(topic.removeprefix("cluster:")) for topic in topics if topic.startswith("cluster:")}
    for cluster in clusters:
        request_reconcile(cluster)


def request_reconcile(cluster_id: int) -> None:
    """Ask for a reconciliation of this cluster soon. Never fails: the watcher looks anyway."""
    from hekla.controller.tasks import turn  # noqa: PLC0415  (tasks import the whole controller)

    try:
        turn.apply_async(args=(cluster_id,), retry=False, expires=10)
    except (OperationalError, OSError) as error:
        log.warning("could not send a wake-up, the next look will do: %s", error)
