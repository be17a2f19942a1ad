"""A time-out for work that may never end, for example a sign-in program."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from hekla.backends.base import BackendError
from hekla.domain.translation import translate

T = TypeVar("T")


class Deadline:
    """Runs one call at a time in its own thread. While one hangs, no other begins; later callers wait for it too."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._running: Future[Any] | None = None

    def run(self, work: Callable[[], T]) -> T:
        """The result of the work, or its exception. Raises BackendError after the time-out."""
        if self._running is None or self._running.done():
            self._running = Future()
            threading.Thread(target=_settle, args=(self._running, work), name="sign in", daemon=True).start()
        try:
            found: T = self._running.result(self._seconds)
        except TimeoutError:
            if self._running.done():
                raise
            sentence = translate(
                "Signing in to the cluster takes longer than {seconds} seconds.", seconds=self._seconds
            )
            raise BackendError(sentence) from None
        return found


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
