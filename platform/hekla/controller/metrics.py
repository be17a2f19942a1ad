"""Prometheus metrics of this process: reconciliations, the engine's cycles, and the deserved resources of queues."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from prometheus_client import REGISTRY, Counter, Histogram, Metric
from prometheus_client.registry import Collector

from hekla import engine
from hekla.engine import queue_shares
from hekla.engine.decisions import Decisions
from hekla.engine.faults import ExtensionFailed
from hekla.engine.model import ClusterState
from hekla.engine.policy import SchedulerPolicy
from hekla.engine.queue_shares import QueueShares
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.session import Call, Session
from hekla.lib.exposition import resource_gauges

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LOOK_EVERY_SECONDS = 10.0
_HOLDS_SECONDS = 60.0
"""Older figures are not exported: the cluster is paused, or another process has taken over."""
_MOST_QUEUES = 500
"""Only this many queues, the first by cluster and name, have samples."""
_NO_QUEUE = ""
"""No queue has this name, so the order of pending jobs, the most expensive part, is not computed."""

RECONCILE_SECONDS = Histogram(
    "hekla_controller_reconcile_duration_seconds", "Reconciliations of clusters.", ["cluster"], buckets=_BUCKETS
)
CYCLE_SECONDS = Histogram("hekla_engine_cycle_duration_seconds", "Cycles of the engine.", ["cluster"], buckets=_BUCKETS)
BINDS = Counter("hekla_engine_binds", "Pods that the engine bound to a node.", ["cluster"])
EVICTIONS = Counter("hekla_engine_evictions", "Pods that the engine decided to evict.", ["cluster"])


class QueueShareMetrics(Collector):
    """The shares of queues at the start of a cycle, read at most every ten seconds."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, Mapping[str, QueueShares]]] = {}

    def look(self, cluster: str) -> Callable[[Session], None] | None:
        """A callback that reads the shares from the next cycle's session; None if they were read recently."""
        known = self._known.get(cluster)
        if known is not None and time.monotonic() - known[0] < _LOOK_EVERY_SECONDS:
            return None
        return lambda session: self._take(cluster, session)

    def _take(self, cluster: str, session: Session) -> None:
        try:
            found = queue_shares.queue_shares(session, waiting_in=_NO_QUEUE)
        except ExtensionFailed:  # the cycle reports it
            found = {}
        self._known[cluster] = time.monotonic(), found

    def collect(self) -> Iterator[Metric]:
        """The deserved resources of each queue, if a plugin divides the cluster and the figures are recent."""
        now = time.monotonic()
        found = [
            ((cluster, queue), one.deserved.in_base_units())
            for cluster, (at, shares) in sorted(self._known.copy().items())
            for queue, one in sorted(shares.items())
            if one.plugin and now - at < _HOLDS_SECONDS
        ]
        text, labels = "Deserved resources of a queue", ["cluster", "queue"]
        yield from resource_gauges("hekla_queue_deserved", text, labels, found[:_MOST_QUEUES])


shares = QueueShareMetrics()
REGISTRY.register(shares)


def cycle(
    cluster: str, state: ClusterState, policy: SchedulerPolicy, now: datetime, call: Call, *, cache: SchedulerCache
) -> Decisions:
    """Run a cycle of the engine, and record its metrics."""
    with CYCLE_SECONDS.labels(cluster).time():
        decided = engine.cycle(state, policy, now.timestamp(), call, cache=cache, on_open=shares.look(cluster))
    BINDS.labels(cluster).inc(len(decided.binds))
    EVICTIONS.labels(cluster).inc(len(decided.evictions))
    return decided
