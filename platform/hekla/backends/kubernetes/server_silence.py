"""Back-off for an API server that accepts connections and answers nothing.

Each request to it waits for its time-out, and a reconciliation makes many requests. So after the first time-out, the
others fail at once for a while.
"""

import time

from hekla.backends.base import BackendError

RETRY_SECONDS = 10.0


class ServerSilence:
    """Whether the server answers, as observed by this process. Any number of threads may use it at once."""

    def __init__(self) -> None:
        self._answered_at = self._silent_until = float("-inf")

    def check(self) -> float:
        """The time at which a request is sent. Raises BackendError while the server is silent."""
        now = time.monotonic()
        if now < self._silent_until:
            raise BackendError(f"The API server does not answer: it is asked again in {self._silent_until - now:.0f} s")
        return now

    def record_answer(self) -> None:
        """Record that the server answered a request, with whatever status."""
        self._answered_at, self._silent_until = time.monotonic(), float("-inf")

    def record_timeout(self, sent_at: float) -> None:
        """Record that a request sent then got no answer. One slow request among answered ones is no silence."""
        if self._answered_at < sent_at:
            self._silent_until = time.monotonic() + RETRY_SECONDS
