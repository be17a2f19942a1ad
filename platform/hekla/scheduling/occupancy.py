"""Current usage of nodes and queues, as sums updated from the event log: a page costs what changed, not what exists.

A cluster cache (`cache`) has every pod of one cluster, for the engine. Pages need sums over all clusters at once.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.selectors import TaskAllocation
from hekla.domain.phases import JobPhase
from hekla.domain.resources import Resources
from hekla.lib import clock

_ALL_EVERY = timedelta(minutes=5)
_MAX_EVENTS = 10_000
"""After more events, everything is read again."""
_JOB, _CLUSTER = "job:", "cluster:"
NodeKey = tuple[int, str]
"""A node by the row id of its cluster and its name."""


@dataclass(frozen=True, slots=True)
class QueueUsage:
    """What a queue's jobs hold, how many of them hold something, and how many wait."""

    used: Resources = field(default_factory=Resources)
    running: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The usage at an instant: nodes with their allocatable resources, what is held on each, and queues by row id.

    Nodes and queues without an entry hold nothing. `number`: the last event that is included. `derived`: what pages
    made of it, by keys of their own, with the language if there are words; for all to read until something changes.
    """

    number: int
    nodes: Sequence[tuple[Node, Resources]]
    machines: Mapping[NodeKey, Resources]
    queues: Mapping[int, QueueUsage]
    derived: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(slots=True)
class _Part:
    """What one job adds to the sums."""

    queue: int
    is_waiting: bool = False
    amounts: dict[NodeKey, dict[str, float]] = field(default_factory=dict)

    def hold(self, one: TaskAllocation) -> None:
        self.is_waiting = False
        per_pod = {**one.request, "pods": 1.0}
        for node, count in Counter(one.nodes).items():
            mine = self.amounts.setdefault((one.job.cluster_id, node), {})
            for name, amount in per_pod.items():
                mine[name] = mine.get(name, 0.0) + amount * count


class _Sums:
    """Sums over all jobs. Amounts are whole numbers, so that subtraction leaves no rounding errors."""

    def __init__(self) -> None:
        self._parts: dict[str, _Part] = {}
        self._machines: defaultdict[NodeKey, Counter[str]] = defaultdict(Counter)
        self._queues: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._running: Counter[int] = Counter()
        self._waiting: Counter[int] = Counter()
        self._cached: Occupancy | None = None

    def put(self, uid: str, part: _Part | None) -> None:
        """Replace what a job adds to the sums; None: nothing."""
        before = self._parts.pop(uid, None)
        if before is not None:
            self._count(before, -1)
        if part is not None:
            self._parts[uid] = part
            self._count(part, 1)
        self._cached = None

    def _count(self, part: _Part, sign: int) -> None:
        for place, amounts in part.amounts.items():
            for name, amount in amounts.items():
                self._machines[place][name] += sign * amount  # type: ignore[assignment]
                self._queues[part.queue][name] += sign * amount  # type: ignore[assignment]
        self._running[part.queue] += sign * bool(part.amounts)
        self._waiting[part.queue] += sign * part.is_waiting

    def occupancy(self, number: int, nodes: Sequence[tuple[Node, Resources]]) -> Occupancy:
        """The sums; converted again only after a change."""
        if self._cached is None:
            known = {*self._queues, *self._running, *self._waiting}
            self._cached = Occupancy(
                number,
                nodes,
                {place: Resources(amounts) for place, amounts in self._machines.items()},
                {pk: QueueUsage(Resources(self._queues[pk]), self._running[pk], self._waiting[pk]) for pk in known},
            )
        elif self._cached.nodes is not nodes:
            self._cached = replace(self._cached, nodes=nodes, derived={})
        return replace(self._cached, number=number)


@dataclass
class _Follower:
    """The sums and nodes, the last event that they include, and the time of the last full read."""

    lock: Lock = field(default_factory=Lock)
    sums: _Sums = field(default_factory=_Sums)
    nodes: Sequence[tuple[Node, Resources]] = ()
    number: int = -1
    read_at: datetime | None = None

    def follow(self, now: datetime) -> None:
        """Update from the database."""
        number = event_log.last_number()
        subjects = self._changed(number, now)
        if subjects is None:
            self.sums, self.read_at = _Sums(), None  # if the read fails, the next call reads everything
        if subjects is None or any(subject.startswith(_CLUSTER) for subject in subjects):
            self.nodes = [(node, Resources.parse(node.allocatable)) for node in clusters.nodes()]
        self._put(None if subjects is None else _uids(subjects))
        self.read_at = now if subjects is None else self.read_at
        self.number = number if subjects is None else max(number, self.number)

    def _changed(self, number: int, now: datetime) -> set[str] | None:
        """The subjects of new events. None: read everything, which also happens every five minutes."""
        if self.read_at is None or now - self.read_at > _ALL_EVERY:
            return None
        if number <= self.number:  # the caller's transaction may see an earlier instant
            return set()
        return event_log.subjects(self.number, number, limit=_MAX_EVENTS)

    def _put(self, uids: set[str] | None) -> None:
        parts = _read(uids) if uids or uids is None else {}
        for uid in parts if uids is None else uids:
            self.sums.put(uid, parts.get(uid))


def _uids(subjects: Collection[str]) -> set[str]:
    return {subject.removeprefix(_JOB) for subject in subjects if subject.startswith(_JOB)}


def _read(uids: Collection[str] | None) -> dict[str, _Part]:
    """What these jobs add, by uid; None: all jobs."""
    found, held = jobs.living(uids)
    parts = {str(job.uid): _Part(job.queue_id, job.phase == JobPhase.PENDING) for job in found}
    for one in held:
        parts[str(one.job.uid)].hold(one)
    return parts


_follower = _Follower()


def now() -> Occupancy:
    """The usage at this instant."""
    with _follower.lock:
        _follower.follow(clock.now())
        return _follower.sums.occupancy(_follower.number, _follower.nodes)


def forget() -> None:
    """Read everything again at the next call, as a new process would."""
    with _follower.lock:
        _follower.read_at = None
