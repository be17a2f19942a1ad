"""What the queues of a cluster hold and deserve as the engine counts it: now, and if a queue were another.

The figures are those of the plugin that divides the cluster, and who would lose pods is what one cycle decides. Nothing
is written.
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
class Present:
    """A cluster as it stands, and its queues by name as the policy in force sees them.

    `number`: of the last event that is in it.
    """

    number: int
    snapshot: Snapshot
    policy: SchedulerPolicy
    now: datetime
    standings: Mapping[str, QueueShares]


@dataclass(frozen=True, slots=True)
class Loss:
    """So many pods of a job would be evicted at once."""

    job: Job
    pods: int


@dataclass(frozen=True, slots=True)
class ShareForecast:
    """The queues before and after a change, and who would lose pods that nobody takes from them as it is."""

    before: Mapping[str, QueueShares]
    after: Mapping[str, QueueShares]
    losses: tuple[Loss, ...] = field(default=())


def present(queue: Queue) -> Present:
    """How a queue and the others of its cluster stand now; of the others the lines are left out."""
    with looking_at(queue.cluster) as outlook:
        standings = outlook.once(("standings", queue.name), lambda: _standings(outlook, queue))
        return Present(outlook.number, outlook.snapshot, outlook.policy, outlook.now, standings)


def _standings(outlook: Outlook, queue: Queue) -> Mapping[str, QueueShares]:
    """By name; empty where nothing can be decided either."""
    try:
        return queue_shares.queue_shares(outlook.session(), waiting_in=queue.name)
    except ExtensionFailed:
        return {}


def forecast(changed: Queue) -> ShareForecast:
    """What would be if a queue were as this row, which need not be saved. Its name says which; a new one is added."""
    here = present(changed)
    state = here.snapshot.state
    other = replace(state, queues=_with(state.queues, snapshot.queue(changed)))
    _, as_it_is = _shares_and_decisions(state, here.policy, here.now)
    after, as_it_would_be = _shares_and_decisions(other, here.policy, here.now)
    return ShareForecast(here.standings, after, tuple(_losses(here.snapshot, as_it_is, as_it_would_be)))


def _shares_and_decisions(
    state: model.ClusterState, policy: SchedulerPolicy, now: datetime
) -> tuple[dict[str, QueueShares], Decisions]:
    """The standings at the beginning of a cycle, and what it decides."""
    found: dict[str, QueueShares] = {}

    def look(session: Session) -> None:
        found.update(queue_shares.queue_shares(session))

    return found, engine.cycle(state, policy, now.timestamp(), on_open=look)


def _with(queues: tuple[model.QueueSpec, ...], changed: model.QueueSpec) -> tuple[model.QueueSpec, ...]:
    if all(queue.name != changed.name for queue in queues):
        return (*queues, changed)
    return tuple(changed if queue.name == changed.name else queue for queue in queues)


def _losses(current: Snapshot, before: Decisions, after: Decisions) -> Iterable[Loss]:
    """A cycle evicts pods one by one for the same reasons each time: those that go only after the change count."""
    gone_anyway = {eviction.pod for eviction in before.evictions}
    lost = Counter(eviction.job for eviction in after.evictions if eviction.pod not in gone_anyway)
    return (Loss(current.jobs[uid], pods) for uid, pods in lost.items() if uid in current.jobs)
