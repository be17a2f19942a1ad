"""Shares of a cluster's queues as the engine computes them: now, and with one queue changed.

The figures are those of the plugin that divides the cluster. One simulated cycle decides which pods would be evicted.
Nothing is written.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from hekla import engine
from hekla.apps.jobs.models import Job
from hekla.apps.queues.models import Queue
from hekla.engine import model, queue_shares
from hekla.engine.decisions import Decisions
from hekla.engine.faults import ExtensionFailed
from hekla.engine.policy import SchedulerPolicy
from hekla.engine.queue_shares import QueueShares
from hekla.engine.session import Session
from hekla.scheduling import snapshot
from hekla.scheduling.snapshot import Snapshot
from hekla.simulation.snapshot_cache import Outlook, looking_at


@dataclass(frozen=True, slots=True)
class ClusterShares:
    """The current state of a cluster, and the shares of its queues by name under the policy in force.

    `number`: the last event that is included.
    """

    number: int
    snapshot: Snapshot
    policy: SchedulerPolicy
    now: datetime
    shares: Mapping[str, QueueShares]


@dataclass(frozen=True, slots=True)
class PodLoss:
    """How many pods of a job would be evicted at once."""

    job: Job
    pods: int


@dataclass(frozen=True, slots=True)
class ShareForecast:
    """The queues before and after a change, and the jobs that would lose pods only because of the change."""

    before: Mapping[str, QueueShares]
    after: Mapping[str, QueueShares]
    losses: tuple[PodLoss, ...] = field(default=())


def present(queue: Queue) -> ClusterShares:
    """The current shares of a queue and of the others in its cluster; only this queue's waiting jobs are listed."""
    with looking_at(queue.cluster) as outlook:
        shares = outlook.once(("shares", queue.name), lambda: _queue_shares(outlook, queue))
        return ClusterShares(outlook.number, outlook.snapshot, outlook.policy, outlook.now, shares)


def _queue_shares(outlook: Outlook, queue: Queue) -> Mapping[str, QueueShares]:
    """The shares by name; empty if a failed plugin prevents every decision."""
    try:
        return queue_shares.queue_shares(outlook.session(), waiting_in=queue.name)
    except ExtensionFailed:
        return {}


def forecast(changed: Queue) -> ShareForecast:
    """The shares if a queue were as in this row, saved or not. Its name identifies the queue; a new one is added."""
    here = present(changed)
    state = here.snapshot.state
    other = replace(state, queues=_with(state.queues, snapshot.queue(changed)))
    _, as_it_is = _shares_and_decisions(state, here.policy, here.now)
    after, as_it_would_be = _shares_and_decisions(other, here.policy, here.now)
    return ShareForecast(here.shares, after, tuple(_losses(here.snapshot, as_it_is, as_it_would_be)))


def _shares_and_decisions(
    state: model.ClusterState, policy: SchedulerPolicy, now: datetime
) -> tuple[dict[str, QueueShares], Decisions]:
    """The shares at the start of a cycle, and its decisions."""
    found: dict[str, QueueShares] = {}

    def look(session: Session) -> None:
        found.update(queue_shares.queue_shares(session))

    return found, engine.cycle(state, policy, now.timestamp(), on_open=look)


def _with(queues: tuple[model.QueueSpec, ...], changed: model.QueueSpec) -> tuple[model.QueueSpec, ...]:
    if all(queue.name != changed.name for queue in queues):
        return (*queues, changed)
    return tuple(changed if queue.name == changed.name else queue for queue in queues)


def _losses(current: Snapshot, before: Decisions, after: Decisions) -> Iterable[PodLoss]:
    """The jobs that lose pods only after the change; a pod that is evicted in both cases does not count."""
    gone_anyway = {eviction.pod for eviction in before.evictions}
    lost = Counter(eviction.job for eviction in after.evictions if eviction.pod not in gone_anyway)
    return (PodLoss(current.jobs[uid], pods) for uid, pods in lost.items() if uid in current.jobs)
