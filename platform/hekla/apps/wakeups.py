"""Wakes a Celery task with a message that only says "look now" and carries no data.

The work is in the database, so a message may come twice, late or never: the beat sends one too, but seldom. In between,
the code that writes new work wakes the task, and the task wakes itself for the next time at which it has work. Call
after the commit: a task that looks earlier finds nothing.
"""

import logging
import time
from datetime import datetime
from threading import Lock

from celery import current_app
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)
HORIZON_SECONDS = 30.0
"""Wakeups further ahead than this are left to the beat, which wakes the task more often than that."""
_EXPIRES_SECONDS = 10.0


class Wakeup:
    """Wakes one task, at most once per `pause` seconds from this process; the last of many calls still has effect."""

    def __init__(self, task: str, *, pause: float = 1.0) -> None:
        self.task = task
        self._pause = pause
        self._lock = Lock()
        self._last = self._ahead = float("-inf")
        """When the last run began, and when the requested one begins, by the monotonic clock."""

    def soon(self) -> None:
        """Run the task now, or after the pause if it was just woken."""
        self._ask(0.0)

    def after(self, seconds: float) -> None:
        """Run the task after this many seconds; no effect beyond `HORIZON_SECONDS`."""
        if seconds <= HORIZON_SECONDS:
            self._ask(seconds)

    def at(self, instant: datetime | None, *, now: datetime) -> None:
        """Run the task at this time; None: no effect."""
        if instant is not None:
            self.after(max(0.0, (instant - now).total_seconds()))

    def _ask(self, delay: float) -> None:
        now = time.monotonic()
        with self._lock:
            if self._ahead <= now:
                self._last = self._ahead
            wanted = max(now + delay, self._last + self._pause)
            if now < self._ahead <= wanted:  # that run requests the next one
                return
            self._ahead = wanted
        self._send(wanted - now)

    def _send(self, delay: float) -> None:
        """Send the message. Failures are only logged: the beat wakes the task too."""
        countdown = delay or None
        try:
            current_app.send_task(self.task, retry=False, countdown=countdown, expires=delay + _EXPIRES_SECONDS)
        except (OperationalError, OSError) as error:
            log.warning("could not wake %s, the next beat will do: %s", self.task, error)
