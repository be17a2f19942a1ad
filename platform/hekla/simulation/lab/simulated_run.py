"""Runs a workload on the engine in simulated time.

Time jumps from event to event: a job is submitted, a pod ends, a node comes or goes. Instants are those at which the
recorded controller decided next, within a minute; else whole steps, a part of the period: what happens in a step
happens together at its end. The engine runs after the events of an instant, until nothing changes, and only while a job
waits. It gets the very same objects for what did not change, as from the controller's cache. Evicted pods hold their
nodes for as long as they did, or usually did.

Where the free room shows that no waiting pod fits, the engine only admits jobs and sets phases, or does not run at all
if there is none to admit and the last cycle changed nothing. That needs a policy whose decisions do not change with
time alone, and that evicts nothing. There, a job that comes alone is admitted and placed in one cycle.
"""

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import count

from hekla.domain.phases import GangPhase
from hekla.engine import cycle, registry
from hekla.engine.actions import enqueue, shuffle
from hekla.engine.decisions import Decisions
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.model import PodStatus, QueueSpec
from hekla.engine.policy import PluginOption, SchedulerPolicy
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.unexplained import AdmissionSession, UnexplainedSession
from hekla.simulation.lab.change import read_policy
from hekla.simulation.lab.job_run import JobRun
from hekla.simulation.lab.room import FreeRoom
from hekla.simulation.lab.workload import (
    SECOND,
    CapacityChange,
    EvictionEffect,
    History,
    Workload,
)

_MAX_ROUNDS = 8
"""Cycles at one instant, as in one reconcile of the controller."""
MAX_STEPS = 50_000
"""Of a period: 12 s of a week, 2 s of a day. The controller also needs a moment to decide."""
_RECHECK = 60 * SECOND
"""While jobs wait under a policy that reads the clock, the engine runs at least so often, as the controller does."""
_WAITING_ACTIONS = frozenset({"enqueue", "allocate", "backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim"})
"""Actions that decide nothing while no job waits."""
_PLACING_ACTIONS = frozenset({"enqueue", "allocate", "backfill"})
"""Actions that evict nothing. What one cycle binds then needs no other: it has tried all waiting jobs with what was
left.
"""
Progress = Callable[[float], None]
"""Gets the part of the jobs that have ended or left, from 0 to 1. May raise to stop the run."""
_READY_SWITCH = ExtensionPoint.JOB_READY.switch
_Event = tuple[int, int, Callable[[], None]]
"""When it happens, its number among those of one instant, and what it does."""


class RunBroken(Exception):
    """The run cannot go on: a plugin failed, or the policy evicts the same pods over and over.

    `code`, `values`: the same for a sentence in the reader's language.
    """

    def __init__(self, message: str, code: str = "refused", values: Mapping[str, str] | None = None) -> None:
        super().__init__(message, code, values)
        self.message, self.code, self.values = message, code, values or {"text": message}

    def __str__(self) -> str:
        return self.message


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
    """Run a workload under a policy, and later under those that followed it. Raises RunBroken, and what `progress`
    raises.
    """
    return _Run(workload, policy, progress or (lambda _part: None)).outcome()


def step_of(workload: Workload) -> int:
    """The step of simulated time for a workload, in milliseconds."""
    return max(1, (workload.ends - workload.starts) // MAX_STEPS)


class _Run:
    def __init__(self, workload: Workload, policy: SchedulerPolicy, progress: Progress) -> None:
        self._progress, self._workload = progress, workload
        self._cache, self._now, self._cycles, self._left = SchedulerCache(), workload.starts, 0, 0
        self._state, self._step_size = workload.state, step_of(workload)
        self._nodes = {node.name: node for node in workload.state.nodes}
        self._queues = {queue.name: queue for queue in workload.state.queues}
        self._alive: dict[str, JobRun] = {}
        """The jobs that have arrived and not left, by uid, as the engine gets them."""
        self._waiting: set[str] = set()
        self._changed: list[str] = []
        """The jobs whose phase the last cycle changed."""
        self._bound: set[str] = set()
        """The jobs that got nodes at this instant."""
        self._has_decided = False
        """Whether the last cycle bound or evicted pods."""
        self._gone: dict[str, set[int]] = {}
        """Pods that the last cycle evicted, and that leave their nodes at once."""
        self._nominated: dict[str, str] = {}
        self._room = FreeRoom()
        self._room.set_nodes(self._nodes.values(), ())
        self._only_bound = False
        """Whether the last cycle did nothing but bind pods."""
        self._is_changed = True
        """Whether anything but ends of whole jobs happened since the last cycle, or that cycle changed something."""
        self._new: list[JobRun] = []
        """The jobs that arrived since the last cycle."""
        self._stopping: set[str] = set()
        """Jobs with pods that are stopping: others may be placed for the time after."""
        is_recorded = bool(workload.instants)
        self._jobs = {job.uid: JobRun(job, self._room, is_recorded=is_recorded) for job in workload.jobs}
        self._events: list[_Event] = []
        self._numbers = count()
        self._recheck = -1
        self._most_cycles = 50_000 + 50 * len(workload.jobs)
        self._set_policy(policy)

    def _set_policy(self, policy: SchedulerPolicy) -> None:
        self._policy = policy
        self._needs_all = not _WAITING_ACTIONS.issuperset(policy.actions)
        self._evicts = not _PLACING_ACTIONS.issuperset(policy.actions)
        options = [option for tier in policy.tiers for option in tier]
        is_known = not (policy.follows_volcano or policy.reads_clock or any(map(_is_external, options)))
        self._room_counts = is_known and not self._evicts and enqueue.NAME in policy.actions
        """Whether the engine only admits jobs where no pod has room; without this action, `allocate` admits them."""
        self._admits_first = policy.actions[:1] == (enqueue.NAME,)
        """Whether one cycle can place what it admits."""
        self._is_whole = any(option.name == "gang" and option.has(_READY_SWITCH) for option in options)
        """Whether jobs start only with their minimum."""
        self._is_changed = True

    def outcome(self) -> RunOutcome:
        for job in self._workload.jobs:
            if job.placed:
                self._continue(self._jobs[job.uid])
            else:
                self._plan(max(job.submitted, self._now), partial(self._submit, self._jobs[job.uid]))
            for at, priority in job.priorities:
                self._plan(at, partial(self._set_priority, self._jobs[job.uid], priority))
        for change in self._workload.changes:
            self._plan(change.at, partial(self._change_node, change))
        for update in self._workload.queues:
            self._plan(update.at, partial(self._change_queue, update.queue))
        for later in self._workload.policies[1:]:
            self._plan(later.at, partial(self._set_policy, read_policy(later.text)))
        while self._events:
            self._step()
        return RunOutcome({uid: one.history() for uid, one in self._jobs.items()}, self._now, self._cycles)

    def _plan(self, at: int, act: Callable[[], None]) -> None:
        """Add an event, at the end of its step, or when the recorded controller decided next."""
        instants = self._workload.instants
        place = bisect_left(instants, at)
        if place < len(instants) and instants[place] - at <= _RECHECK:
            at = instants[place]
        else:
            at += (self._workload.starts - at) % self._step_size
        heapq.heappush(self._events, (at, next(self._numbers), act))

    def _step(self) -> None:
        """All events of the next instant, then the engine."""
        self._now = self._events[0][0]
        while self._events and self._events[0][0] == self._now:
            heapq.heappop(self._events)[2]()
        if (self._waiting or self._needs_all) and not self._is_idle():
            self._settle()
        if self._policy.reads_clock and self._waiting and self._recheck <= self._now and self._events:
            self._recheck = self._now + _RECHECK
            self._plan(self._recheck, _nothing)
        self._progress(self._left / max(1, len(self._jobs)))

    def _is_idle(self) -> bool:
        """Whether a cycle would surely change nothing."""
        return not (self._is_changed or self._may_admit() or self._may_place())

    def _may_admit(self) -> bool:
        return any(self._jobs[uid].is_pending for uid in self._waiting)

    def _may_place(self) -> bool:
        """Whether a cycle might place pods, as far as room goes, or evict some."""
        if not self._room_counts or self._stopping:
            return True
        return any(self._jobs[uid].may_start(self._room, is_whole=self._is_whole) for uid in self._waiting)

    def _set_priority(self, one: JobRun, priority: int) -> None:
        one.set_priority(priority)
        self._is_changed = True

    def _submit(self, one: JobRun) -> None:
        one.arrive()
        self._new.append(one)
        self._is_changed = True
        self._alive[one.job.uid] = one
        self._waiting.add(one.job.uid)
        if one.job.leaves is not None:
            self._plan(max(one.job.leaves, self._now), partial(self._give_up, one))

    def _give_up(self, one: JobRun) -> None:
        if one.started is None:
            self._leave(one)

    def _continue(self, one: JobRun) -> None:
        """A job whose pods were on nodes when the workload began."""
        places = one.continue_on(self._nodes)
        self._alive[one.job.uid] = one
        self._note_binds(one, places)
        self._look_at(one)

    # The engine.

    def _settle(self) -> None:
        for _ in range(_MAX_ROUNDS):
            self._cycles += 1
            if self._cycles > self._most_cycles:
                raise RunBroken("The policy evicts the same pods again and again.", "evicts_again")
            early = self._create_early()
            groups = tuple([one.group for one in self._alive.values() if one.group is not None])
            self._state = replace(self._state, jobs=groups)
            session_class = UnexplainedSession if self._may_place() else AdmissionSession
            decided = cycle(
                self._state, self._policy, self._now / SECOND, cache=self._cache, session_class=session_class
            )
            if decided.faults:
                fault = decided.faults[0]
                values = {"plugin": fault.name, "point": str(fault.point), "error": fault.error}
                raise RunBroken(f"{fault.name} failed at {fault.point}: {fault.error}", "plugin_failed", values)
            self._apply(decided)
            if early is not None and early.is_pending:
                early.restart()
            if not self._move_on():
                break
        self._see_running()

    def _create_early(self) -> JobRun | None:
        """If one job is new, and no other can be admitted or placed: create its pods now. So one cycle admits and
        places it, with the same result as two: admission does not look at pods.
        """
        new, self._new = self._new, []
        if len(new) != 1 or not (self._room_counts and self._admits_first) or self._stopping or self._state.quotas:
            return None
        one = new[0]
        for uid in self._waiting:
            other = self._jobs[uid]
            if other is not one and (other.is_pending or other.may_start(self._room, is_whole=self._is_whole)):
                return None
        if not one.is_pending:
            return None
        before = one.group
        one.create_pods(self._now / SECOND)
        if one.may_start(self._room, is_whole=self._is_whole):
            return one
        one.group = before
        return None

    def _see_running(self) -> None:
        """Before the next instant, the controller sees that pods run: jobs with all pods on nodes are running then.

        Nothing else follows from that: what they hold counts as much as what they were admitted for.
        """
        bound, self._bound = self._bound, set()
        is_whole = [self._alive[uid].begin_running() for uid in bound if uid in self._alive]
        self._is_changed &= not (all(is_whole) and self._only_bound)

    def _apply(self, decided: Decisions) -> None:
        binds: dict[str, dict[str, str]] = defaultdict(dict)
        for bind in decided.binds:
            binds[bind.job][bind.pod] = bind.node
        for uid, places in binds.items():
            one = self._jobs[uid]
            one.place(places, self._now / SECOND)
            self._note_binds(one, {one.positions[pod]: node for pod, node in places.items()})
            self._look_at(one)
        self._bound |= binds.keys()
        evicted: dict[str, set[str]] = defaultdict(set)
        for eviction in decided.evictions:
            evicted[eviction.job].add(eviction.pod)
        for uid, pods in evicted.items():
            self._evict(self._jobs[uid], pods)
        if any(eviction.action == shuffle.NAME for eviction in decided.evictions):
            self._state = replace(self._state, last_shuffle_at=self._now / SECOND)
        if self._nominated or decided.nominated:
            self._nominate(decided.nominated, {bind.pod for bind in decided.binds})
        self._has_decided = bool(decided.binds or decided.evictions)
        phases, alive = decided.phases, self._alive
        self._changed = [
            uid for uid, one in alive.items() if one.group and phases.get(uid, one.group.phase) is not one.group.phase
        ]
        for uid in self._changed:
            alive[uid].set_phase(phases[uid])
        self._is_changed = bool(self._has_decided or self._changed or decided.nominated)
        self._only_bound = not (decided.evictions or self._changed or decided.nominated)

    def _nominate(self, new: Mapping[str, str], bound: Collection[str]) -> None:
        """Pods that wait for evicted ones get their nodes, until they are bound, as from the controller."""
        nodes, before = {**self._nominated, **new}, self._nominated
        self._nominated = {}
        for uid in self._waiting:
            own = self._jobs[uid].positions.keys() & nodes.keys() - bound
            self._nominated |= {pod: nodes[pod] for pod in own}
            if own or self._jobs[uid].positions.keys() & before.keys():
                self._jobs[uid].nominate(self._nominated)

    def _note_binds(self, one: JobRun, places: Mapping[int, str]) -> None:
        """Pods got nodes now: plan their ends, those of one instant together."""
        ends: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for pod, node in places.items():
            since, run_time = one.bind(pod, node, self._now), one.run_time(pod)
            if run_time is not None:
                stops = one.job.stops.get((pod, one.attempts[pod]), 0)
                ends[since + run_time, one.versions[pod], stops].append(pod)
        for (at, version, stops), pods in ends.items():
            if stops and at - stops > self._now:
                self._plan(at - stops, partial(self._stop_pods, one, version, frozenset(pods)))
            self._plan(max(at, self._now), partial(self._end_pods, one, version, frozenset(pods)))

    def _look_at(self, one: JobRun) -> None:
        """Whether the job has started, and whether something of it waits."""
        if one.look(self._now):
            self._waiting.add(one.job.uid)
        else:
            self._waiting.discard(one.job.uid)

    def _evict(self, one: JobRun, uids: Collection[str]) -> None:
        """These pods release their nodes; all of the job if it cannot do without them."""
        self._stopping.add(one.job.uid)
        pods = {one.positions[uid] for uid in uids}
        one.evictions += len(pods)
        if one.job.on_eviction is not EvictionEffect.PODS:
            pods = {*one.bound} - one.leaving
        later: dict[int, set[int]] = defaultdict(set)
        for pod in pods:
            later[one.next_release(pod, self._workload.release)].add(pod)
        one.leaving |= pods
        one.mark(pods, PodStatus.RELEASING)
        for delay, some in later.items():
            if delay:
                self._plan(self._now + delay, partial(self._let_go, one, some))
            else:
                self._gone[one.job.uid] = some

    # Between cycles.

    def _move_on(self) -> bool:
        """Whether the next cycle has something new to decide: admitted jobs, resources that were released, or pods
        that can be evicted now.
        """
        gone, self._gone = self._gone, {}
        for uid, pods in gone.items():
            self._let_go(self._jobs[uid], pods)
        admitted = [uid for uid in self._changed if uid in self._alive and self._alive[uid].lacks_pods]
        for uid in admitted:
            self._alive[uid].create_pods(self._now / SECOND)
        if gone:
            self._is_changed, self._only_bound = True, False
        return bool(gone or admitted or (self._evicts and self._has_decided))

    def _let_go(self, one: JobRun, pods: Collection[int]) -> None:
        """Evicted pods have left their nodes."""
        pods = {pod for pod in pods if pod in one.leaving}
        one.leaving -= pods
        for pod in pods:
            one.release(pod, self._now)
        if one.job.on_eviction is EvictionEffect.PODS:
            one.again(pods, self._now / SECOND)
        elif one.drop(pods):
            if one.job.on_eviction is EvictionEffect.END:
                self._leave(one)
                return
            one.restart()
        self._look_at(one)

    def _stop_pods(self, one: JobRun, version: int, pods: Iterable[int]) -> None:
        """Somebody stopped these pods: they hold their nodes until they end. A whole job is not admitted then."""
        now = {pod for pod in pods if pod in one.bound and one.versions[pod] == version}
        self._is_changed = True
        self._stopping.add(one.job.uid)
        one.mark(now, PodStatus.RELEASING)
        if now and now == one.bound.keys():
            one.set_phase(GangPhase.PENDING)

    def _end_pods(self, one: JobRun, version: int, pods: Iterable[int]) -> None:
        now = {pod for pod in pods if pod in one.bound and one.versions[pod] == version and pod not in one.leaving}
        if not now:
            return
        again = {pod for pod in now if one.end_attempt(pod, self._now)}
        if one.needed <= one.ended:
            for pod in [*one.bound]:
                one.end_hold(pod, self._now)
            one.finished = self._now
            self._leave(one)
            return
        one.again(again, self._now / SECOND)
        one.mark(now - again, PodStatus.SUCCEEDED)
        self._is_changed = True
        self._look_at(one)

    def _leave(self, one: JobRun) -> None:
        if self._alive.pop(one.job.uid, None) is not None:
            self._left += 1
            one.leave()
        self._waiting.discard(one.job.uid)
        self._stopping.discard(one.job.uid)

    # The cluster.

    def _change_queue(self, queue: QueueSpec) -> None:
        self._queues[queue.name] = queue
        self._state = replace(self._state, queues=tuple(self._queues.values()))
        self._is_changed = True

    def _change_node(self, change: CapacityChange) -> None:
        if change.node is None:
            self._nodes.pop(change.name, None)
            self._lose(change.name)
        else:
            self._nodes[change.name] = change.node
        self._state = replace(self._state, nodes=tuple(self._nodes.values()))
        self._room.set_nodes(self._nodes.values(), (held for one in self._alive.values() for held in one.held()))
        self._is_changed = True

    def _lose(self, node: str) -> None:
        """The pods of a lost node start again elsewhere."""
        for one in [*self._alive.values()]:
            lost = {pod for pod, at in one.bound.items() if one.binds[at].node == node}
            if not lost:
                continue
            one.leaving -= lost
            for pod in lost:
                one.release(pod, self._now)
            one.again(lost, self._now / SECOND)
            self._look_at(one)


def _is_external(option: PluginOption) -> bool:
    return registry.is_external(option.name)


def _nothing() -> None:
    """An instant at which only the engine looks."""
