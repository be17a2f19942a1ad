"""Nodes whose logs cannot be read now, so that one of them does not hold up all the others.

A request to a dead node waits long for nothing. So such a node is tried once in a while, and given up when it has not
answered for longer than a machine takes to restart.
"""

import time
from dataclasses import dataclass

RETRY_SECONDS = 30.0
GIVE_UP_SECONDS = 600.0


@dataclass(slots=True)
class _Failures:
    first: float
    last: float


class NodeBackoff:
    """Since when nodes have not answered, as this process has seen it."""

    def __init__(self) -> None:
        self._failures: dict[str, _Failures] = {}

    def may_try(self, node: str) -> bool:
        """Not again right after it did not answer."""
        known = self._failures.get(node)
        return known is None or time.monotonic() - known.last > RETRY_SECONDS

    def is_silent(self, node: str) -> bool:
        """Whether it has not answered for so long that nobody waits for it."""
        known = self._failures.get(node)
        return known is not None and known.last - known.first > GIVE_UP_SECONDS

    def record_failure(self, node: str) -> None:
        """It did not answer now."""
        now = time.monotonic()
        self._failures.setdefault(node, _Failures(now, now)).last = now

    def record_success(self, node: str) -> None:
        """It answered."""
        self._failures.pop(node, None)
