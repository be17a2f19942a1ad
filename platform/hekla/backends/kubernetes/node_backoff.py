"""Back-off for nodes whose logs cannot be read, so a dead node does not delay the logs of others.

A request to a dead node waits for its time-out. So such a node is retried only periodically, and given up when it has
not answered for longer than a machine takes to restart.
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
    """The failures of nodes, as observed by this process."""

    def __init__(self) -> None:
        self._failures: dict[str, _Failures] = {}

    def may_try(self, node: str) -> bool:
        """Whether to send a request: not within 30 seconds after a failure."""
        known = self._failures.get(node)
        return known is None or time.monotonic() - known.last > RETRY_SECONDS

    def is_silent(self, node: str) -> bool:
        """Whether the node has not answered for so long that it is given up."""
        known = self._failures.get(node)
        return known is not None and known.last - known.first > GIVE_UP_SECONDS

    def record_failure(self, node: str) -> None:
        """Record that the node did not answer."""
        now = time.monotonic()
        self._failures.setdefault(node, _Failures(now, now)).last = now

    def record_success(self, node: str) -> None:
        """Record that the node answered."""
        self._failures.pop(node, None)
