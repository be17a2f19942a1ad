"""What a process keeps of each cluster to be asked about: a picture that the log keeps up, and the engine's world.

A question costs what happened since the last one, and the cycles that it needs. Those of a cluster come one after
another, but for those that take long: they have a line of their own, so that nobody who types waits for them.
"""

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
from hekla.simulation.simulator import Course

_RUN_TIMES_EVERY = timedelta(minutes=1)
_HOLDS_FOR = timedelta(seconds=30)
"""Time alone changes what is decided: some policies let what waits grow more urgent."""
T = TypeVar("T")


@dataclass(frozen=True)
class _Derived:
    """What follows from a picture and a policy at an instant, by what was asked."""

    snapshot: Snapshot
    policy: SchedulerPolicy
    now: datetime
    found: dict[Hashable, Any] = field(default_factory=dict)


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
    """A cluster as it stands at an instant, from which courses begin. `number`: of the last event that is in it."""

    number: int
    snapshot: Snapshot
    policy: SchedulerPolicy
    now: datetime
    _cluster: Cluster
    _entry: _Entry

    @property
    def run_times(self) -> RunTimes:
        """How long jobs of this cluster ran, not older than a minute."""
        if self._entry.run_times is None or self.now - self._entry.run_times[0] > _RUN_TIMES_EVERY:
            self._entry.run_times = self.now, runtimes.of(self._cluster.pk)
        return self._entry.run_times[1]

    def once(self, question: Hashable, find: Callable[[], T]) -> T:
        """What is found by this question: where nothing happened since it was asked last, what was found then."""
        known = self._entry.derived
        if known is None or not self._is_as(known):
            known = self._entry.derived = _Derived(self.snapshot, self.policy, self.now)
        if question not in known.found:
            known.found[question] = find()
        found: T = known.found[question]
        return found

    def _is_as(self, known: _Derived) -> bool:
        return known.snapshot is self.snapshot and known.policy == self.policy and self.now - known.now <= _HOLDS_FOR

    def course(self) -> Course:
        """How it would go on, from when all that is decided at once is decided."""
        other = self.once("course", self._settled).fork()
        other.now = self.now
        return other

    def session(self) -> Session:
        """A cycle at its beginning, to ask the plugins of the policy; nothing is decided. Raises Failed."""
        return open_session(self.snapshot.state, self.policy, self.now.timestamp(), cache=self._entry.world)

    def empty(self) -> Course:
        """The same machines and queues without a job."""
        alone = Snapshot(replace(self.snapshot.state, jobs=()), {}, ())
        return Course(alone, self.policy, self._entry.empty, self.now)

    def _settled(self) -> Course:
        course = Course(self.snapshot, self.policy, self._entry.world, self.now)
        course.settle()
        return course


_entries: dict[tuple[int, bool], _Entry] = {}
_entries_lock = Lock()


@contextmanager
def looking_at(cluster: Cluster, *, is_long: bool = False) -> Iterator[Outlook]:
    """What the cluster is like now, for as long as nobody else asks; `is_long`: it may take seconds."""
    with _entries_lock:
        entry = _entries.setdefault((cluster.pk, is_long), _Entry())
    with entry.lock:
        yield _outlook(cluster, entry, clock.now())


def _outlook(cluster: Cluster, entry: _Entry, now: datetime) -> Outlook:
    entry.picture.refresh(cluster, _NOBODY, now=now)
    entry.picture.dirty(now)
    snapshot = entry.picture.snapshot(cluster)
    return Outlook(entry.picture.number, snapshot, policies.in_force(cluster), now, cluster, entry)


_NOBODY: Mapping[str, str] = {}
"""For whom evicted pods make room is known to the controller alone; the engine finds it out anew."""


def forget_all() -> None:
    """Drop what this process keeps, as a new process would."""
    with _entries_lock:
        _entries.clear()
