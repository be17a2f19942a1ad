"""Waking what lets flows go on: a message that carries no fact, sent at most some times a second."""

import logging
import time
from typing import Any

from django.dispatch import receiver
from kombu.exceptions import OperationalError

from hekla.apps.event_log.signals import recorded
from hekla.apps.flows import selectors

log = logging.getLogger(__name__)
PAUSE_SECONDS = 0.2
_last = 0.0


@receiver(recorded)
def after_commit(*, topics: set[str], **_kwargs: Any) -> None:  # noqa: ANN401
    """Something happened to a job: a flow may wait for it."""
    global _last  # noqa: PLW0603  (of this process; the beat looks anyway)
    if time.monotonic() - _last < PAUSE_SECONDS or not any(topic.startswith("job:") for topic in topics):
        return
    _last = time.monotonic()
    if selectors.any_in_progress():
        _request_look()


def _request_look() -> None:
    """Ask for a look soon. Never fails: the beat looks anyway."""
    from hekla.apps.flows.tasks import advance  # noqa: PLC0415  (tasks import the services, which record events)

    try:
        advance.apply_async(retry=False, expires=5)
    except (OperationalError, OSError) as error:
        log.warning("could not send a wake-up, the next beat will do: %s", error)
