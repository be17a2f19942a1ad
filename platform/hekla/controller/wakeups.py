"""Wake-ups of the controller: messages without data that request a reconciliation. The watcher covers lost ones."""

import logging
from typing import Any

from django.dispatch import receiver
from kombu.exceptions import OperationalError

from hekla.apps.event_log.services import CONTROLLER
from hekla.apps.event_log.signals import recorded

log = logging.getLogger(__name__)


@receiver(recorded)
def wake_after_commit(*, actor: str, topics: set[str], **_kwargs: Any) -> None:  # noqa: ANN401
    """Request a reconciliation of the clusters that a commit concerns, unless the controller made it."""
    if actor == CONTROLLER.name:
        return
    clusters = {int(topic.removeprefix("cluster:")) for topic in topics if topic.startswith("cluster:")}
    for cluster in clusters:
        request_reconcile(cluster)


def request_reconcile(cluster_id: int) -> None:
    """Request a reconciliation of this cluster. Never fails: the watcher checks anyway."""
    from hekla.controller.tasks import turn  # noqa: PLC0415  (tasks import the whole controller)

    try:
        turn.apply_async(args=(cluster_id,), retry=False, expires=10)
    except (OperationalError, OSError) as error:
        log.warning("could not send a wake-up, the next look will do: %s", error)
