"""Work that may never end, such as a program that signs in, is waited for only so long."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from hekla.backends.base import BackendError
from hekla.domain.translation import translate

T = TypeVar("T")


class Deadline:
    """Runs one work at a time in a thread of its own. While one hangs no other begins; its result is waited for."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._running: Future[Any] | None = None

    def run(self, work: Callable[[], T]) -> T:
        """What the work returns or raises. Raises BackendError if it takes too long."""
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
