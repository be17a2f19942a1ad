"""Waking a task: a message that says "look", and carries no fact.

What is to be done stands in rows, so a message may come twice, late or never: the beat sends one anyway, but seldom.
In between a task is woken when somebody writes what it waits for, and wakes itself for the next instant that it waits
for. Call from behind the commit: who looks earlier finds nothing.
"""

import logging
import time
from datetime import datetime
from threading import Lock

from celery import current_app
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)
HORIZON_SECONDS = 30.0
"""What is due later than this is left to a look that the beat asks for before it: it asks more often than that."""
_EXPIRES_SECONDS = 10.0


class Wakeup:
    """Wakes one task, from this process once in `pause` seconds at most; the last of many calls is heeded too."""

    def __init__(self, task: str, *, pause: float = 1.0) -> None:
        self.task = task
        self._pause = pause
        self._lock = Lock()
        self._last = self._ahead = float("-inf")
        """When the last look began, and the one ahead begins, by the monotonic clock."""

    def soon(self) -> None:
        """Have it look now, or where it was just woken, after the pause."""
        self._ask(0.0)

    def after(self, seconds: float) -> None:
        """Have it look so many seconds from now."""
        if seconds <= HORIZON_SECONDS:
            self._ask(seconds)

    def at(self, instant: datetime | None, *, now: datetime) -> None:
        """Have it look at that instant; None: there is none."""
        if instant is not None:
            self.after(max(0.0, (instant - now).total_seconds()))

    def _ask(self, delay: float) -> None:
        now = time.monotonic()
        with self._lock:
            if self._ahead <= now:
                self._last = self._ahead
            wanted = max(now + delay, self._last + self._pause)
            if now < self._ahead <= wanted:  # it will ask for what comes after it
                return
            self._ahead = wanted
        self._send(wanted - now)

    def _send(self, delay: float) -> None:
        """Never fails: the beat looks anyway."""
        countdown = delay or None
        try:
            current_app.send_task(self.task, retry=False, countdown=countdown, expires=delay + _EXPIRES_SECONDS)
        except (OperationalError, OSError) as error:
            log.warning("could not wake %s, the next beat will do: %s", self.task, error)
