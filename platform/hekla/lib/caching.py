"""An answer that costs something, found once for all who ask for it within some seconds."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class CachedValue(Generic[T]):
    """What `find` answers, for so many seconds. Who asks while it is looked for waits for that same answer."""

    def __init__(self, find: Callable[[], T], seconds: float) -> None:
        self._find, self._seconds = find, seconds
        self._lock = Lock()
        self._known: tuple[float, T] | None = None

    def __call__(self) -> T:
        """The answer; whatever `find` raises is raised, and nothing is kept of it."""
        with self._lock:
            if self._known is None or time.monotonic() - self._known[0] >= self._seconds:
                found = self._find()
                self._known = time.monotonic(), found
            return self._known[1]

    def forget(self) -> None:
        """The next who asks has it looked for anew."""
        with self._lock:
            self._known = None
