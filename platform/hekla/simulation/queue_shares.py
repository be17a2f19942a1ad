"""Shares of a cluster's queues as the engine computes them: now, and with one queue changed.

The figures are those of the plugin that divides the cluster. A simulation of the next cycles decides which pods
would be evicted, and which jobs could never start. Nothing is written.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from hekla.apps.jobs.models import Job
from hekla.apps.queues.models import Queue
from hekla.domain.resources import Resources
from hekla.engine import model, queue_shares
from hekla.engine.cycle import open_session
from hekla.engine.faults import ExtensionFailed
from hekla.engine.policy import SchedulerPolicy
from hekla.engine.queue_shares import QueueShares
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.scheduling import snapshot
from hekla.scheduling.snapshot import Snapshot
from hekla.simulation.simulator import Simulator
from hekla.simulation.snapshot_cache import Outlook, looking_at


@dataclass(frozen=True, slots=True)
class ClusterShares:
    """The current state of a cluster, and the shares of its queues by name under the policy in force.

    `number`: the last event that is included. `jobs`: the unfinished jobs of each queue, by its row id.
    """

    number: int
    snapshot: Snapshot
    policy: SchedulerPolicy
    now: datetime
    shares: Mapping[str, QueueShares]
    jobs: Mapping[int, Sequence[Job]]


@dataclass(frozen=True, slots=True)
class PodLoss:
    """How many pods of a job would be evicted at once."""

    job: Job
    pods: int


@dataclass(frozen=True, slots=True)
class LimitLoss:
    """A queue that can use less of a resource after a change. `held`: allocated to its pods now."""

    queue: str
    resource: str
    before: float
    after: float
    held: float


@dataclass(frozen=True, slots=True)
class OverCommitment:
    """A resource of which queues are guaranteed more than the cluster has."""

    resource: str
    guaranteed: float
    capacity: float


@dataclass(frozen=True, slots=True)
class ShareForecast:
    """The queues before and after a change, and what is lost only because of the change.

    `losses`: jobs that would lose pods at once; `limit_losses`: queues that could use less; `blocked`: pending jobs
    that could never start. `over_commitments`: guarantees beyond the cluster after the change.
    """

    before: Mapping[str, QueueShares]
    after: Mapping[str, QueueShares]
    losses: tuple[PodLoss, ...] = field(default=())
    limit_losses: tuple[LimitLoss, ...] = ()
    blocked: tuple[Job, ...] = ()
    over_commitments: tuple[OverCommitment, ...] = ()


def present(queue: Queue, *, is_alone: bool = False) -> ClusterShares:
    """The current shares of a queue and of the others in its cluster; only this queue's waiting jobs are listed.

    `is_alone`: without the shares of the others, which take most of the time.
    """
    read = _own_shares if is_alone else _queue_shares
    with looking_at(queue.cluster) as outlook:
        shares = outlook.once(("shares", queue.name, is_alone), lambda: read(outlook, queue))
        jobs = outlook.once("jobs of queues", lambda: _by_queue(outlook.snapshot))
        return ClusterShares(outlook.number, outlook.snapshot, outlook.policy, outlook.now, shares, jobs)


def _by_queue(current: Snapshot) -> Mapping[int, Sequence[Job]]:
    found: dict[int, list[Job]] = defaultdict(list)
    for job in current.jobs.values():
        found[job.queue_id].append(job)
    return found


def _queue_shares(outlook: Outlook, queue: Queue) -> Mapping[str, QueueShares]:
    """The shares by name; empty if a failed plugin prevents every decision."""
    try:
        return queue_shares.queue_shares(outlook.session(), waiting_in=queue.name)
    except ExtensionFailed:
        return {}


def _own_shares(outlook: Outlook, queue: Queue) -> Mapping[str, QueueShares]:
    """As `_queue_shares`, of this queue alone."""
    try:
        found = queue_shares.shares_of(outlook.session(), queue.name)
    except ExtensionFailed:
        return {}
    return {queue.name: found} if found else {}


def over_commitments(queue: Queue) -> tuple[OverCommitment, ...]:
    """The resources of which the queues of its cluster are guaranteed more than the cluster has."""
    here = present(queue)
    return tuple(_over_commitments(here.shares, _capacity(here.snapshot.state)))


def forecast(changed: Queue) -> ShareForecast:
    """The shares if a queue were as in this row, saved or not. Its name identifies the queue; a new one is added."""
    here = present(changed)
    state = here.snapshot.state
    other = replace(here.snapshot, state=replace(state, queues=_with(state.queues, snapshot.queue(changed))))
    before, after = _settled(here.snapshot, here), _settled(other, here)
    shares, capacity = _shares(other.state, here.policy, here.now), _capacity(state)
    return ShareForecast(
        here.shares,
        shares,
        tuple(_losses(here.snapshot, before, after)),
        tuple(_limit_losses(here.shares, shares, capacity)),
        tuple(_blocked(here.snapshot, before, after)),
        tuple(_over_commitments(shares, capacity)),
    )


def _settled(initial: Snapshot, here: ClusterShares) -> Simulator:
    """The cluster after the next reconcile."""
    simulator = Simulator(initial, here.policy, SchedulerCache(), here.now)
    simulator.settle()
    return simulator


def _shares(state: model.ClusterState, policy: SchedulerPolicy, now: datetime) -> Mapping[str, QueueShares]:
    """The shares at the start of a cycle; empty if a failed plugin prevents every decision."""
    try:
        return queue_shares.queue_shares(open_session(state, policy, now.timestamp()))
    except ExtensionFailed:
        return {}


def _with(queues: tuple[model.QueueSpec, ...], changed: model.QueueSpec) -> tuple[model.QueueSpec, ...]:
    if all(queue.name != changed.name for queue in queues):
        return (*queues, changed)
    return tuple(changed if queue.name == changed.name else queue for queue in queues)


def _losses(current: Snapshot, before: Simulator, after: Simulator) -> Iterable[PodLoss]:
    """The jobs that lose pods only after the change; a pod that is evicted in both cases does not count."""
    gone_anyway = {eviction.pod for eviction in before.evictions}
    gone = {eviction.pod: eviction.job for eviction in after.evictions if eviction.pod not in gone_anyway}
    lost = Counter(gone.values())
    return (PodLoss(current.jobs[uid], pods) for uid, pods in lost.items() if uid in current.jobs)


def _blocked(current: Snapshot, before: Simulator, after: Simulator) -> Iterable[Job]:
    """The pending jobs that can never start only after the change."""
    return (current.jobs[uid] for uid in sorted(_never(after) - _never(before)) if uid in current.jobs)


def _never(simulator: Simulator) -> set[str]:
    reasons = simulator.decided.reasons
    return {uid for uid in simulator.waiting() if any(not reason.ever for reason in reasons.get(uid, ()))}


def _capacity(state: model.ClusterState) -> Resources:
    return sum((node.allocatable for node in state.nodes), Resources())


def _limit_losses(
    before: Mapping[str, QueueShares], after: Mapping[str, QueueShares], capacity: Resources
) -> Iterable[LimitLoss]:
    """By queue and resource of the cluster: a lower limit than before."""
    for queue in before.keys() & after.keys():
        for name in sorted(capacity):
            old, new = (min(shares[queue].most(name), capacity.amount(name)) for shares in (before, after))
            if new < old:
                yield LimitLoss(queue, name, old, new, after[queue].allocated.amount(name))


def _over_commitments(shares: Mapping[str, QueueShares], capacity: Resources) -> Iterable[OverCommitment]:
    """By resource: more guaranteed than the cluster has. In a tree of queues the guarantees of the top ones count."""
    is_tree = any(one.ancestors for one in shares.values())
    top = (one.guarantee for one in shares.values() if not is_tree or len(one.ancestors) == 1)
    for name, guaranteed in sorted(sum(top, Resources()).items()):
        if capacity and guaranteed > capacity.amount(name):
            yield OverCommitment(name, guaranteed, capacity.amount(name))
