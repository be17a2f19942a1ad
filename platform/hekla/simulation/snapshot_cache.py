"""What a process caches of each cluster for predictions: its rows, updated from the event log, and the engine's cache.

A query costs what changed since the last one, and the cycles that it needs. Queries about one cluster run one after
another. Long ones have a cache and a lock of their own, so that a person who types does not wait for them.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, TypeVar

from hekla.apps.clusters.models import Cluster
from hekla.engine.cycle import open_session
from hekla.engine.policy import SchedulerPolicy
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.session import Session
from hekla.lib import clock
from hekla.scheduling import policies
from hekla.scheduling.cache import ClusterCache
from hekla.scheduling.snapshot import Snapshot
from hekla.simulation import runtimes
from hekla.simulation.runtimes import RunTimes
from hekla.simulation.simulator import Simulator

_RUN_TIMES_EVERY = timedelta(minutes=1)
_HOLDS_FOR = timedelta(seconds=30)
"""Time alone changes the decisions of some policies: for example, they make waiting jobs more urgent."""
_HOLDS_AT_MOST = timedelta(minutes=5)
"""For the other policies, unless something happens: on a large cluster a new result costs seconds. Not for longer,
because the pods that start in a simulation count from its beginning.
"""
_MOST_LARGE = 16
T = TypeVar("T")


@dataclass(frozen=True)
class _Derived:
    """Results that follow from a snapshot and a policy at an instant, by query."""

    snapshot: Snapshot
    policy: SchedulerPolicy
    now: datetime
    found: dict[Hashable, Any] = field(default_factory=dict)
    large: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)


@dataclass
class _Entry:
    lock: Lock = field(default_factory=Lock)
    picture: ClusterCache = field(default_factory=ClusterCache)
    world: SchedulerCache = field(default_factory=SchedulerCache)
    empty: SchedulerCache = field(default_factory=SchedulerCache)
    run_times: tuple[datetime, RunTimes] | None = None
    derived: _Derived | None = None


@dataclass(frozen=True)
class Outlook:
    """The state of a cluster at an instant, where simulations start. `number`: the last event that is included."""

    number: int
    snapshot: Snapshot
    policy: SchedulerPolicy
    now: datetime
    _cluster: Cluster
    _entry: _Entry

    @property
    def run_times(self) -> RunTimes:
        """How long jobs of this cluster ran, at most a minute old."""
        if self._entry.run_times is None or self.now - self._entry.run_times[0] > _RUN_TIMES_EVERY:
            self._entry.run_times = self.now, runtimes.of(self._cluster.pk)
        return self._entry.run_times[1]

    def knows(self, question: Hashable) -> bool:
        """Whether `once` has the result already."""
        known = self._entry.derived
        return known is not None and self._is_as(known) and question in known.found

    def once(self, question: Hashable, find: Callable[[], T]) -> T:
        """The result of `find`, cached by `question` until something happens, or time may change it."""
        cached = self._derived().found
        if question not in cached:
            cached[question] = find()
        found: T = cached[question]
        return found

    def once_lately(self, question: Hashable, find: Callable[[], T]) -> T:
        """As `once`, for large results: only the last ones are cached."""
        cached = self._derived().large
        if question not in cached:
            cached[question] = find()
        cached.move_to_end(question)
        if len(cached) > _MOST_LARGE:
            cached.popitem(last=False)
        found: T = cached[question]
        return found

    def _derived(self) -> _Derived:
        known = self._entry.derived
        if known is None or not self._is_as(known):
            known = self._entry.derived = _Derived(self.snapshot, self.policy, self.now)
        return known

    def _is_as(self, known: _Derived) -> bool:
        limit = _HOLDS_FOR if self.policy.reads_clock else _HOLDS_AT_MOST
        return known.snapshot is self.snapshot and known.policy == self.policy and self.now - known.now <= limit

    def simulator(self) -> Simulator:
        """A simulation that starts when all immediate decisions are made."""
        other = self.once("course", self._settled).fork()
        other.now = self.now
        return other

    def session(self) -> Session:
        """A session with its plugins open and no action run, for queries. Raises ExtensionFailed."""
        return open_session(self.snapshot.state, self.policy, self.now.timestamp(), cache=self._entry.world)

    def empty(self) -> Simulator:
        """A simulation of the same nodes and queues without jobs."""
        alone = Snapshot(replace(self.snapshot.state, jobs=()), {}, (), self.snapshot.runtimes)
        return Simulator(alone, self.policy, self._entry.empty, self.now)

    def _settled(self) -> Simulator:
        simulator = Simulator(self.snapshot, self.policy, self._entry.world, self.now)
        simulator.settle()
        return simulator


_entries: dict[tuple[int, bool], _Entry] = {}
_entries_lock = Lock()


@contextmanager
def looking_at(cluster: Cluster, *, is_long: bool = False) -> Iterator[Outlook]:
    """The cluster as it is now, locked for other queries; `is_long`: the query may take seconds."""
    with _entries_lock:
        entry = _entries.setdefault((cluster.pk, is_long), _Entry())
    with entry.lock:
        yield _outlook(cluster, entry, clock.now())


def _outlook(cluster: Cluster, entry: _Entry, now: datetime) -> Outlook:
    entry.picture.refresh(cluster, _NOBODY, now=now)
    entry.picture.forget_dirty()
    snapshot = entry.picture.snapshot(cluster)
    return Outlook(entry.picture.number, snapshot, policies.for_predictions(cluster), now, cluster, entry)


_NOBODY: Mapping[str, str] = {}
"""Only the controller knows the nominated nodes; the engine decides about them anew."""


def forget_all() -> None:
    """Drop all caches of this process."""
    with _entries_lock:
        _entries.clear()
