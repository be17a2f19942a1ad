"""Simulates the future of a cluster, cycle by cycle, as the controller would run it.

Evicted pods are gone by the next cycle, and admitted jobs have pods by then. Time advances only with `end`. Nothing is
written: the rows are only read, and the engine decides on copies.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from hekla.apps.jobs.facts import job_facts, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.domain import lifecycle
from hekla.domain.lifecycle import PodRef, Stimulus
from hekla.domain.phases import GangPhase
from hekla.domain.policies import PARTIAL_ACTIONS, LifecycleAction, LifecycleEvent
from hekla.engine import cycle, model, queue_shares
from hekla.engine.actions import shuffle
from hekla.engine.cycle import open_session
from hekla.engine.decisions import Decisions, Eviction
from hekla.engine.faults import ExtensionFailed
from hekla.engine.model import PodStatus
from hekla.engine.policy import SchedulerPolicy
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.scheduling import snapshot, storage
from hekla.scheduling.devices import with_own_claims
from hekla.scheduling.snapshot import Snapshot

_MAX_ROUNDS = 8
"""The maximum number of cycles, as in one reconcile of the controller."""
_PLACED = frozenset({PodStatus.BOUND, PodStatus.RUNNING, PodStatus.SUCCEEDED})
_ON_NODE = frozenset({PodStatus.BOUND, PodStatus.RUNNING})
_ENDING = frozenset({PodStatus.RELEASING})
_GO_ON = frozenset({LifecycleAction.SYNC_JOB, *PARTIAL_ACTIONS})
"""After these actions the job itself continues when one of its pods was evicted."""


class Simulator:
    """A simulated cluster. `decided`: the decisions of the last cycle; `evictions`: those of all cycles."""

    def __init__(self, initial: Snapshot, policy: SchedulerPolicy, world: SchedulerCache, now: datetime) -> None:
        self.now, self.decided, self.evictions = now, Decisions(), list[Eviction]()
        self._policy, self._world, self._initial = policy, world, initial
        self._jobs = {job.uid: job for job in initial.state.jobs}
        self._rows = dict(initial.jobs)
        self._last_shuffle_at = initial.state.last_shuffle_at
        self._devices, self._storage = initial.state.devices, initial.state.storage
        self._leaving: dict[str, LifecycleAction] = {
            job.uid: LifecycleAction.SYNC_JOB
            for job in initial.state.jobs
            if any(t.status in _ENDING for t in job.pods)
        }
        self._pod_ids = count(-1, -1)

    def fork(self) -> "Simulator":
        """A copy that continues from here, with no evictions yet."""
        other = copy(self)
        other.evictions, other._jobs, other._rows, other._leaving = [], dict(self._jobs), dict(self._rows), {}
        return other

    def put(self, row: Job) -> None:
        """Add or replace a job as in this row, with no pods placed: a draft, or a pending job with changes."""
        uid = str(row.pk)
        self._rows[uid] = row
        is_in = GangPhase(row.gang_phase) is not GangPhase.PENDING
        self._jobs[uid] = self._job(row, self._pods(row) if is_in else [])

    def cordon(self, node: str) -> None:
        """No pod starts on this node any more, unless it tolerates that."""
        state = self._initial.state
        nodes = tuple(replace(one, unschedulable=True) if one.name == node else one for one in state.nodes)
        self._initial = replace(self._initial, state=replace(state, nodes=nodes))

    def drain(self, node: str, uids: Iterable[str]) -> None:
        """Cordon this node, and evict the pods of these jobs there; they are gone by the next cycle."""
        self.cordon(node)
        for uid in uids:
            if pods := {pod.uid for pod in self._jobs[uid].pods if pod.node == node and pod.status in _ON_NODE}:
                self._evict(uid, pods)
        self._move_on()

    def settle(self, until: str = "") -> bool:
        """Run cycles until nothing changes, or the job `until` has started. Returns whether it has."""
        for _ in range(_MAX_ROUNDS):
            self.decided = cycle(self._state(), self._policy, self.now.timestamp(), cache=self._world)
            is_restless = self._follow() | self._move_on()
            if self.has_started(until) or not is_restless:
                break
        return self.has_started(until)

    def _state(self) -> model.ClusterState:
        return replace(
            self._initial.state,
            jobs=self.jobs(),
            last_shuffle_at=self._last_shuffle_at,
            devices=self._devices,
            storage=self._storage,
        )

    def waiting_in(self, queue: str) -> list[str]:
        """The uids of the waiting jobs of a queue, in the order of the engine; empty if a plugin fails."""
        try:
            session = open_session(self._state(), self._policy, self.now.timestamp(), cache=self._world)
        except ExtensionFailed:
            return []
        return queue_shares.waiting_in(session, queue)

    def usable_nodes(self, uid: str) -> frozenset[str]:
        """The nodes that may take a waiting pod of this job, room aside; empty if a plugin fails, or none may."""
        try:
            session = open_session(self._state(), self._policy, self.now.timestamp(), cache=self._world)
        except ExtensionFailed:
            return frozenset()
        found: set[str] = set()
        for pod in session.representatives(session.jobs[uid]):
            found |= {session.table.nodes[row].name for row in session.node_fit(pod).feasible.nonzero()[0]}
        return frozenset(found)

    def queues_below(self, name: str) -> frozenset[str]:
        """The names of this queue and of all queues below it."""
        found, fresh = {name}, {name}
        while fresh:
            fresh = {queue.name for queue in self._initial.state.queues if queue.parent in fresh} - found
            found |= fresh
        return frozenset(found)

    def end(self, uids: Iterable[str], at: datetime) -> None:
        """Remove these jobs: they have ended by this time."""
        self.now = max(self.now, at)
        for uid in uids:
            self._jobs.pop(uid, None)
            self._leaving.pop(uid, None)

    def jobs(self) -> tuple[model.PodGroupSpec, ...]:
        """The current state of all jobs."""
        return tuple(self._jobs.values())

    def job(self, uid: str) -> model.PodGroupSpec | None:
        """The current state of a job; None if it is gone."""
        return self._jobs.get(uid)

    def has_started(self, uid: str) -> bool:
        """Whether a job has enough placed pods to run."""
        return uid in self._jobs and has_started(self._jobs[uid])

    def row(self, uid: str) -> Job | None:
        """The row of a job; None for a finished job whose pods still end."""
        return self._rows.get(uid)

    def started(self) -> list[str]:
        """The uids of the jobs that have started."""
        return [uid for uid, job in self._jobs.items() if has_started(job)]

    def placed(self) -> list[str]:
        """The uids of the jobs with a pod on a node."""
        return [uid for uid, job in self._jobs.items() if any(task.node for task in job.pods)]

    def waiting(self) -> list[str]:
        """The uids of the jobs that have not started, in the order of their submission."""
        return [uid for uid, job in self._jobs.items() if uid in self._rows and not has_started(job)]

    def nodes(self, uid: str) -> dict[str, int]:
        """The number of a job's pods by node."""
        job = self._jobs.get(uid)
        return dict(Counter(task.node for task in job.pods if task.status in _PLACED)) if job else {}

    # Decisions of a cycle.

    def _follow(self) -> bool:
        decided = self.decided
        binds: dict[str, dict[str, str]] = defaultdict(dict)
        evicted: dict[str, set[str]] = defaultdict(set)
        for bind in decided.binds:
            binds[bind.job][bind.pod] = bind.node
        for eviction in decided.evictions:
            evicted[eviction.job].add(eviction.pod)
        self.evictions += decided.evictions
        if any(eviction.action == shuffle.NAME for eviction in decided.evictions):
            self._last_shuffle_at = self.now.timestamp()
        for uid, places in binds.items():
            self._each(uid, lambda task, places=places: self._bound(task, places))  # type: ignore[misc]
        for uid, tasks in evicted.items():
            self._evict(uid, tasks)
        changed = [uid for uid, phase in decided.phases.items() if self._jobs[uid].phase is not phase]
        for uid in changed:
            self._jobs[uid] = replace(self._jobs[uid], phase=decided.phases[uid])
        return bool(binds or evicted or changed)

    def _each(self, uid: str, change: Callable[[model.PodSpec], model.PodSpec]) -> None:
        job = self._jobs[uid]
        self._jobs[uid] = replace(job, pods=tuple(change(task) for task in job.pods))

    def _bound(self, task: model.PodSpec, places: dict[str, str]) -> model.PodSpec:
        if task.uid not in places:
            return task
        at = self.now.timestamp()
        return replace(task, status=PodStatus.RUNNING, node=places[task.uid], nominated_node="", scheduled_at=at)

    def _evict(self, uid: str, tasks: set[str]) -> None:
        """Evict these pods, and all of the job if its policies require it."""
        row = self._rows.get(uid)
        roles = {task.role for task in self._jobs[uid].pods if task.uid in tasks}
        actions = [_answer(row, role) for role in sorted(roles)] if row else []
        action = next((one for one in actions if one not in _GO_ON), LifecycleAction.SYNC_JOB)
        self._leaving[uid] = action
        is_all = action not in _GO_ON
        self._each(uid, lambda task: _leaving(task) if is_all or task.uid in tasks else task)

    # Changes before the next cycle.

    def _move_on(self) -> bool:
        leaving, self._leaving = self._leaving, {}
        for uid, action in leaving.items():
            self._let_go(uid, action)
        let_in = [uid for uid, job in self._jobs.items() if uid in self._rows and _lacks_pods(job)]
        for uid in let_in:
            self._make_pods(uid)
        return bool(leaving or let_in)

    def _let_go(self, uid: str, action: LifecycleAction) -> None:
        job = self._jobs[uid]
        if action in _GO_ON:
            tasks = (self._replaced(task) if task.status in _ENDING else task for task in job.pods)
            self._jobs[uid] = replace(job, pods=tuple(task for task in tasks if task is not None))
        elif action is LifecycleAction.RESTART_JOB:
            self._jobs[uid] = replace(job, pods=(), phase=GangPhase.PENDING)
        else:
            del self._jobs[uid]

    def _replaced(self, task: model.PodSpec) -> model.PodSpec | None:
        """The next attempt of an evicted pod; None if the pod was stopped for another reason."""
        pod = self._initial.pods.get(task.uid)
        if pod is not None and pod.stopping and not pod.evicted:
            return None
        return replace(task, status=PodStatus.PENDING, node="", scheduled_at=0.0)

    def _make_pods(self, uid: str) -> None:
        row = copy(self._rows[uid])
        row.gang_phase = self._jobs[uid].phase
        self._jobs[uid] = self._job(row, self._pods(row))

    def _job(self, row: Job, pods: list[Pod]) -> model.PodGroupSpec:
        """A job with these pods, whose claims exist from now on."""
        if spec_of(row).claims_devices:
            self._devices = with_own_claims(self._devices, [(row, pods)])
        job = snapshot.job(row, pods, {}, self._initial.runtimes)
        if not storage.mounts_claims(row):
            return job
        if self._initial.state.storage == storage.NO_STORAGE:
            return storage.without_claims(job)
        self._storage = storage.with_new_claims(self._storage, [row])
        return job

    def _pods(self, row: Job) -> list[Pod]:
        """The pods that the controller would create."""
        outcome = lifecycle.advance(job_facts(row), (), LifecycleAction.SYNC_JOB, now=self.now)
        one = Pod(job=row, version=row.version, created_at=self.now)
        return [_like(one, next(self._pod_ids), ref) for ref in outcome.create]


def _like(pod: Pod, pk: int, ref: PodRef) -> Pod:
    """Another attempt created at the same time, never saved: a new model instance for each costs ten times as much."""
    other = Pod.__new__(Pod)
    other.__dict__.update(pod.__dict__, id=pk, task=ref.task, index=ref.index, attempt=ref.attempt)
    return other


def _lacks_pods(job: model.PodGroupSpec) -> bool:
    return not job.pods and job.phase is not GangPhase.PENDING


def has_started(job: model.PodGroupSpec) -> bool:
    """Whether enough of its pods are placed for the job to run."""
    placed = sum(task.status in _PLACED for task in job.pods)
    return placed >= max(1, job.min_available)


def started_at(job: model.PodGroupSpec) -> datetime | None:
    """The time when the first of its placed pods was scheduled; None if unknown."""
    times = [task.scheduled_at for task in job.pods if task.status in _PLACED and task.scheduled_at]
    return datetime.fromtimestamp(min(times), UTC) if times else None


def _leaving(task: model.PodSpec) -> model.PodSpec:
    return replace(task, status=PodStatus.RELEASING) if task.node else task


def _answer(row: Job, role: str) -> LifecycleAction:
    """The action of the job's policies after an eviction."""
    return lifecycle.resolve(job_facts(row), Stimulus(event=LifecycleEvent.POD_EVICTED, task=role))
