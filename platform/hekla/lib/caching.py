"""A cache for one expensive value."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class CachedValue(Generic[T]):
    """The result of `load`, cached for some seconds. Callers during a load wait for its result."""

    def __init__(self, load: Callable[[], T], seconds: float) -> None:
        self._load, self._seconds = load, seconds
        self._lock = Lock()
        self._value: tuple[float, T] | None = None

    def __call__(self) -> T:
        """The cached value, loaded if there is none or it is too old. Errors of `load` are raised and not cached."""
        with self._lock:
            if self._value is None or time.monotonic() - self._value[0] >= self._seconds:
                value = self._load()
                self._value = time.monotonic(), value
            return self._value[1]

    def clear(self) -> None:
        """Drop the value; the next call loads it again."""
        with self._lock:
            self._value = None
