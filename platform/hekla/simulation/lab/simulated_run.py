"""Runs a workload on the engine in simulated time.

Time jumps from event to event: a job is submitted, a pod ends, a node comes or goes. Instants are whole steps, a part
of the period: what happens in a step happens together at its end, or within a minute when the recorded controller
decided next. The engine runs after the events of an instant, until
nothing changes, and only while a job waits. It gets the very same objects for what did not change, as from the
controller's cache. Evicted pods release their nodes at once, as in `simulation.simulator`.
"""

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count
from typing import NamedTuple

from hekla.domain.phases import GangPhase
from hekla.engine import cycle
from hekla.engine.actions import shuffle
from hekla.engine.decisions import Decisions
from hekla.engine.model import PodGroupSpec, PodSpec, PodStatus
from hekla.engine.policy import SchedulerPolicy
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.simulation.lab.workload import (
    SECOND,
    CapacityChange,
    EvictionEffect,
    History,
    RecordedBind,
    RunTime,
    Workload,
    WorkloadJob,
)

_MAX_ROUNDS = 8
"""Cycles at one instant, as in one reconcile of the controller."""
MAX_STEPS = 50_000
"""Of a period: 12 s of a week, 2 s of a day. The controller also needs a moment to decide."""
_RECHECK = 60 * SECOND
"""While jobs wait under a policy that reads the clock, the engine runs at least so often, as the controller does."""
_WAITING_ACTIONS = frozenset({"enqueue", "allocate", "backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim"})
"""Actions that decide nothing while no job waits."""
_PLACED = frozenset({PodStatus.RUNNING, PodStatus.SUCCEEDED})
Progress = Callable[[float], None]
"""Gets the part of the jobs that have ended or left, from 0 to 1. May raise to stop the run."""


class RunBroken(Exception):
    """The run cannot go on: a plugin failed, or the policy evicts the same pods over and over."""


class _Event(NamedTuple):
    """What happens at an instant. `number`: the order of events of one instant; `version`: of the job's placements."""

    at: int
    number: int
    uid: str = ""
    version: int = 0
    pods: tuple[int, ...] = ()
    change: CapacityChange | None = None
    gives_up: bool = False


@dataclass(slots=True)
class _JobRun:
    """A job during the run. `attempts`: which attempt each pod is at; `bound`: the bind by which each holds a node.

    `versions`: of each pod, raised when it leaves its node before its end: the event of that end is void then.
    """

    job: WorkloadJob
    attempts: list[int]
    versions: list[int]
    bound: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    started: int | None = None
    finished: int | None = None
    evictions: int = 0
    binds: list[RecordedBind] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run did: the history of each job by uid.

    `ends`: when the last event happened. `cycles`: how often the engine ran.
    """

    histories: Mapping[str, History]
    ends: int
    cycles: int

    @property
    def digest(self) -> str:
        """A digest of all binds: equal for equal decisions."""
        found = sha256()
        for uid, history in self.histories.items():
            for one in history.binds:
                found.update(f"{uid} {one.pod} {one.attempt} {one.node} {one.at}\n".encode())
        return found.hexdigest()


def run(workload: Workload, policy: SchedulerPolicy, progress: Progress | None = None) -> RunOutcome:
    """Run a workload under a policy. Raises RunBroken, and what `progress` raises."""
    return _Run(workload, policy, progress or (lambda _part: None)).outcome()


def step_of(workload: Workload) -> int:
    """The step of simulated time for a workload, in milliseconds."""
    return max(1, (workload.ends - workload.starts) // MAX_STEPS)


class _Run:
    def __init__(self, workload: Workload, policy: SchedulerPolicy, progress: Progress) -> None:
        self._policy, self._progress, self._workload = policy, progress, workload
        self._cache, self._now, self._cycles, self._left = SchedulerCache(), workload.starts, 0, 0
        self._state, self._step_size = workload.state, step_of(workload)
        self._nodes = {node.name: node for node in workload.state.nodes}
        self._groups: dict[str, PodGroupSpec] = {}
        self._waiting: set[str] = set()
        self._changed: list[str] = []
        """The jobs whose phase the last cycle changed."""
        self._leaving: dict[str, EvictionEffect] = {}
        self._jobs = {job.uid: _new_run(job) for job in workload.jobs}
        self._events: list[_Event] = []
        self._numbers = count()
        self._needs_all = not _WAITING_ACTIONS.issuperset(policy.actions)
        self._is_timed, self._recheck = policy.reads_clock, -1
        self._most_cycles = 50_000 + 50 * len(workload.jobs)

    def outcome(self) -> RunOutcome:
        for job in self._workload.jobs:
            if job.placed:
                self._continue(self._jobs[job.uid])
            else:
                self._plan(_Event(max(job.submitted, self._now), next(self._numbers), job.uid))
        for change in self._workload.changes:
            self._plan(_Event(change.at, next(self._numbers), change=change))
        while self._events:
            self._step()
        return RunOutcome(
            {uid: _history(one) for uid, one in self._jobs.items()},
            self._now,
            self._cycles,
        )

    def _plan(self, event: _Event) -> None:
        """Add an event, at the end of its step, or when the recorded controller decided next."""
        at, instants = event.at, self._workload.instants
        place = bisect_left(instants, at)
        if place < len(instants) and instants[place] - at <= _RECHECK:
            at = instants[place]
        else:
            at += (self._workload.starts - at) % self._step_size
        heapq.heappush(self._events, event if at == event.at else event._replace(at=at))

    def _step(self) -> None:
        """All events of the next instant, then the engine."""
        self._now = self._events[0].at
        while self._events and self._events[0].at == self._now:
            self._happen(heapq.heappop(self._events))
        if self._waiting or self._leaving or self._needs_all:
            self._settle()
        if self._is_timed and self._waiting and self._recheck <= self._now and self._events:
            self._recheck = self._now + _RECHECK
            self._plan(_Event(self._recheck, next(self._numbers)))
        self._progress(self._left / max(1, len(self._jobs)))

    def _happen(self, event: _Event) -> None:
        if event.change is not None:
            self._change_node(event.change)
        elif event.pods:
            self._end_pods(event)
        elif event.gives_up:
            if self._jobs[event.uid].started is None:
                self._leave(event.uid)
        elif event.uid:
            self._submit(self._jobs[event.uid].job)

    def _submit(self, job: WorkloadJob) -> None:
        """A job arrives. Its pods exist once it is admitted, as those of the controller."""
        self._groups[job.uid] = replace(job.group, pods=(), phase=GangPhase.PENDING)
        self._waiting.add(job.uid)
        if job.leaves is not None:
            self._plan(_Event(max(job.leaves, self._now), next(self._numbers), job.uid, gives_up=True))

    def _continue(self, one: _JobRun) -> None:
        """A job whose pods were on nodes when the workload began."""
        places, job = one.job.placed, one.job
        pods = tuple(
            replace(pod, status=PodStatus.RUNNING, node=places[at]) if places.get(at) in self._nodes else pod
            for at, pod in enumerate(job.group.pods)
        )
        over = {at for at, attempts in enumerate(job.runs) if not attempts and at not in places}
        one.ended |= over
        pods = tuple(replace(pod, status=PodStatus.SUCCEEDED) if at in over else pod for at, pod in enumerate(pods))
        self._groups[job.uid] = replace(job.group, pods=pods, phase=GangPhase.INQUEUE)
        self._note_binds(one, {at: pod.node for at, pod in enumerate(pods) if pod.node})
        self._look_at(one)

    # The engine.

    def _settle(self) -> None:
        for _ in range(_MAX_ROUNDS):
            self._cycles += 1
            if self._cycles > self._most_cycles:
                raise RunBroken("The policy evicts the same pods again and again.")
            self._state = replace(self._state, jobs=tuple(self._groups.values()))
            decided = cycle(self._state, self._policy, self._now / SECOND, cache=self._cache)
            if decided.faults:
                fault = decided.faults[0]
                raise RunBroken(f"{fault.name} failed at {fault.point}: {fault.error}")
            self._apply(decided)
            if not self._move_on():
                break

    def _apply(self, decided: Decisions) -> None:
        binds: dict[str, dict[str, str]] = defaultdict(dict)
        for bind in decided.binds:
            binds[bind.job][bind.pod] = bind.node
        for uid, places in binds.items():
            self._bind(uid, places)
        evicted: dict[str, set[str]] = defaultdict(set)
        for eviction in decided.evictions:
            evicted[eviction.job].add(eviction.pod)
        for uid, pods in evicted.items():
            self._evict(uid, pods)
        if any(eviction.action == shuffle.NAME for eviction in decided.evictions):
            self._state = replace(self._state, last_shuffle_at=self._now / SECOND)
        phases = decided.phases
        self._changed = [uid for uid, one in self._groups.items() if phases.get(uid, one.phase) is not one.phase]
        for uid in self._changed:
            self._groups[uid] = replace(self._groups[uid], phase=phases[uid])

    def _bind(self, uid: str, places: Mapping[str, str]) -> None:
        one, group, at = self._jobs[uid], self._groups[uid], self._now / SECOND
        self._groups[uid] = replace(
            group,
            pods=tuple(
                replace(pod, status=PodStatus.RUNNING, node=places[pod.uid], scheduled_at=at)
                if pod.uid in places
                else pod
                for pod in group.pods
            ),
        )
        self._note_binds(one, {one.positions[pod]: node for pod, node in places.items()})
        self._look_at(one)

    def _note_binds(self, one: _JobRun, places: Mapping[int, str]) -> None:
        """Pods got nodes now: plan their ends, those of one instant together."""
        ends: dict[tuple[int, int], list[int]] = defaultdict(list)
        for pod, node in places.items():
            attempt = one.attempts[pod]
            one.bound[pod] = len(one.binds)
            one.binds.append(RecordedBind(pod, attempt, node, self._now))
            run_time = _run_time(one.job, pod, attempt)
            if run_time is not None:
                ends[self._now + run_time, one.versions[pod]].append(pod)
        for (at, version), pods in ends.items():
            self._plan(_Event(at, next(self._numbers), one.job.uid, version, tuple(pods)))

    def _look_at(self, one: _JobRun) -> None:
        """Whether the job has started, and whether something of it waits."""
        group = self._groups[one.job.uid]
        placed = sum(pod.status in _PLACED for pod in group.pods)
        if one.started is None and placed >= max(1, group.min_available):
            one.started = self._now
        if placed == len(group.pods) and group.pods:
            self._waiting.discard(one.job.uid)
        else:
            self._waiting.add(one.job.uid)

    def _evict(self, uid: str, pods: set[str]) -> None:
        one, group = self._jobs[uid], self._groups[uid]
        effect = one.job.on_eviction
        one.evictions += len(pods)
        self._leaving[uid] = effect
        is_all = effect is not EvictionEffect.PODS
        for pod in group.pods:
            if pod.node and (is_all or pod.uid in pods):
                self._release(one, one.positions[pod.uid])
        self._groups[uid] = replace(
            group,
            pods=tuple(
                replace(pod, status=PodStatus.RELEASING) if pod.node and (is_all or pod.uid in pods) else pod
                for pod in group.pods
            ),
        )

    def _release(self, one: _JobRun, pod: int) -> None:
        """A pod leaves its node before its end: its attempt is repeated."""
        one.versions[pod] += 1
        if pod in one.bound:
            self._end_hold(one, pod)

    def _end_hold(self, one: _JobRun, pod: int) -> None:
        at = one.bound.pop(pod)
        one.binds[at] = one.binds[at]._replace(until=self._now)

    # Between cycles.

    def _move_on(self) -> bool:
        """Whether the next cycle has something new to decide: admitted jobs, or resources that were released.

        What a cycle binds needs no other cycle: its actions have tried all waiting jobs with what was left.
        """
        leaving, self._leaving = self._leaving, {}
        for uid, effect in leaving.items():
            self._let_go(uid, effect)
        admitted = [uid for uid in self._changed if uid in self._groups and _lacks_pods(self._groups[uid])]
        for uid in admitted:
            self._groups[uid] = replace(self._groups[uid], pods=self._pods(self._jobs[uid]))
        return bool(leaving or admitted)

    def _let_go(self, uid: str, effect: EvictionEffect) -> None:
        if effect is EvictionEffect.END:
            self._leave(uid)
            return
        group = self._groups[uid]
        if effect is EvictionEffect.JOB:
            self._groups[uid] = replace(group, pods=(), phase=GangPhase.PENDING)
        else:
            self._groups[uid] = replace(group, pods=tuple(map(_again, group.pods)))
        self._waiting.add(uid)

    def _pods(self, one: _JobRun) -> tuple[PodSpec, ...]:
        at = self._now / SECOND
        return tuple(
            replace(pod, created_at=at, status=PodStatus.SUCCEEDED if number in one.ended else PodStatus.PENDING)
            for number, pod in enumerate(one.job.group.pods)
        )

    def _end_pods(self, event: _Event) -> None:
        one = self._jobs[event.uid]
        now = {pod for pod in event.pods if pod in one.bound and one.versions[pod] == event.version}
        if not now:
            return
        again = set()
        for pod in now:
            self._end_hold(one, pod)
            if one.attempts[pod] + 1 < len(one.job.runs[pod]):
                one.attempts[pod] += 1
                again.add(pod)
            else:
                one.ended.add(pod)
        if len(one.ended) == len(one.job.group.pods):
            one.finished = self._now
            self._leave(event.uid)
            return
        group = self._groups[event.uid]
        pods = (
            _again(pod) if number in again else replace(pod, status=PodStatus.SUCCEEDED) if number in now else pod
            for number, pod in enumerate(group.pods)
        )
        self._groups[event.uid] = replace(group, pods=tuple(pods))
        self._look_at(one)

    def _leave(self, uid: str) -> None:
        if self._groups.pop(uid, None) is not None:
            self._left += 1
        self._waiting.discard(uid)
        self._leaving.pop(uid, None)

    # Nodes.

    def _change_node(self, change: CapacityChange) -> None:
        if change.node is None:
            self._nodes.pop(change.name, None)
            self._lose(change.name)
        else:
            self._nodes[change.name] = change.node
        self._state = replace(self._state, nodes=tuple(self._nodes.values()))

    def _lose(self, node: str) -> None:
        """The pods of a lost node start again elsewhere."""
        for uid, group in [*self._groups.items()]:
            gone = [pod for pod in group.pods if pod.node == node and pod.status is PodStatus.RUNNING]
            if not gone:
                continue
            one, uids = self._jobs[uid], {pod.uid for pod in gone}
            for pod in gone:
                self._release(one, one.positions[pod.uid])
            pods = tuple(_again(pod) if pod.uid in uids else pod for pod in group.pods)
            self._groups[uid] = replace(group, pods=pods)
            self._look_at(one)


def _new_run(job: WorkloadJob) -> _JobRun:
    size = len(job.group.pods)
    positions = {pod.uid: at for at, pod in enumerate(job.group.pods)}
    return _JobRun(job, [0] * size, [0] * size, positions=positions)


def _run_time(job: WorkloadJob, pod: int, attempt: int) -> RunTime:
    """How long this attempt runs. A pod without a recorded run ends at once: it was not needed."""
    attempts = job.runs[pod]
    return attempts[attempt] if attempts else 0


def _again(pod: PodSpec) -> PodSpec:
    """The next attempt of a pod that left its node; others stay."""
    if pod.status is PodStatus.PENDING or pod.status is PodStatus.SUCCEEDED:
        return pod
    return replace(pod, status=PodStatus.PENDING, node="", nominated_node="", scheduled_at=0.0)


def _lacks_pods(group: PodGroupSpec) -> bool:
    return not group.pods and group.phase is not GangPhase.PENDING


def _history(one: _JobRun) -> History:
    return History(one.started, one.finished, tuple(one.binds), one.evictions)
