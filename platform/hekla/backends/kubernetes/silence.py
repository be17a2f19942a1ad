"""Machines whose logs cannot be read now, so that one of them does not hold up all the others.

Whoever asks a dead machine waits long for nothing: it is asked once in a while, and given up when it was silent for
longer than a machine takes to start anew.
"""

import time
from dataclasses import dataclass

PAUSE_SECONDS = 30.0
PATIENCE_SECONDS = 600.0


@dataclass(slots=True)
class _Silence:
    since: float
    last: float


class SilentNodes:
    """By name, since when they are silent as this process has seen it."""

    def __init__(self) -> None:
        self._silent: dict[str, _Silence] = {}

    def is_to_be_asked(self, node: str) -> bool:
        """Not again right after it did not answer."""
        known = self._silent.get(node)
        return known is None or time.monotonic() - known.last > PAUSE_SECONDS

    def is_given_up(self, node: str) -> bool:
        """It did not answer for so long that nobody waits for it any more."""
        known = self._silent.get(node)
        return known is not None and known.last - known.since > PATIENCE_SECONDS

    def did_not_answer(self, node: str) -> None:
        """At this moment."""
        now = time.monotonic()
        self._silent.setdefault(node, _Silence(now, now)).last = now

    def answered(self, node: str) -> None:
        """It is not silent, or no more."""
        self._silent.pop(node, None)
