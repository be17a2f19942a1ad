"""Asks for a measurement every half minute while somebody wants to know it, in a thread.

So no reconciliation waits for an answer.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from hekla.backends.base import BackendError
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, ApiError

log = logging.getLogger(__name__)
_EVERY_SECONDS, _ABSENCE_VALID_SECONDS = 30.0, 120.0
_WANTED_FOR_SECONDS = 120.0
"""After the last question, the thread ends: another process may lead the cluster now."""
_ENDS_WITHIN_SECONDS = 2.0
Measured = TypeVar("Measured")


class MetricsPoller(ABC, Generic[Measured]):
    """The last measurement. `what`: what is measured, for the log."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._found: Sequence[Measured] = ()
        self._wanted_at = float("-inf")

    @abstractmethod
    def _ask(self) -> Sequence[Measured]:
        """Measure now. Raises BackendError."""

    def _has_subjects(self) -> bool:
        """Whether there is something to measure."""
        return True

    def last(self) -> Sequence[Measured]:
        """The last measurement; nothing before the first, and if nothing is measured."""
        with self._lock:
            self._wanted_at = time.monotonic()
            if self._thread is None and self._has_subjects() and not self._closing.is_set():
                thread = threading.Thread(target=self._run, name=f"metrics of {self._what}", daemon=True)
                thread.start()  # raises if the system has no thread left; the next call tries again
                self._thread = thread
            return self._found

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        if thread := self._thread:
            thread.join(_ENDS_WITHIN_SECONDS)

    def _run(self) -> None:
        while not self._has_ended():
            self._closing.wait(self._poll())

    def _has_ended(self) -> bool:
        """Whether nobody wants to know any more. The next question starts another thread."""
        with self._lock:
            is_wanted = time.monotonic() - self._wanted_at < _WANTED_FOR_SECONDS and not self._closing.is_set()
            if not is_wanted:
                self._thread, self._found = None, ()
            return not is_wanted

    def _poll(self) -> float:
        """Measure. Returns after how many seconds to measure again."""
        pause = _EVERY_SECONDS
        found: Sequence[Measured] = ()
        try:
            found = self._ask()
        except BackendError as error:
            log.info("the usage of %s cannot be read: %s", self._what, error)
            if isinstance(error, ApiError) and error.status in (NOT_FOUND, FORBIDDEN):
                pause = _ABSENCE_VALID_SECONDS
        except Exception:  # if this thread ended, no usage would be read any more
            log.exception("the usage of %s is not understood", self._what)
        self._found = found
        return pause
