"""Reserves nodes for a large job that has waited long enough, so that small jobs do not starve it.

A job is due if it still lacks pods to start `after` (10m) its creation. Of the due jobs, the one with the highest
priority is elected, then the oldest. Nodes that would hold its minimum if they were empty are reserved: those with the
most room first, so that the choice stays the same while they empty. Until the job starts, pods of other jobs are not
placed there, and other jobs of its queue leave it the share that it needs; pods that run there may finish. A job that
could not start even in an empty cluster, by its size or its queue's limits, is skipped. One job is elected at a time.

The election has no memory: each cycle gets the same result while nothing changes, and it ends when the job has started.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from hekla.engine.columns import EPSILON, Mask, NodeTable, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Need
from hekla.engine.job_info import ALLOCATED, JobInfo, PodInfo
from hekla.engine.model import PodStatus, QueueSpec
from hekla.engine.node_fit import NodeFit, Refusal
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.engine.victims import total_request
from hekla.lib.durations import seconds

_AFTER = 600.0
_CANDIDATES = 32
"""How many due jobs are examined in a cycle; each costs as much as placing a new class of pods."""

READS_CLOCK = True
NEEDS: tuple[Need, ...] = ()


def open_session(session: Session, option: PluginOption) -> None:
    """Reserve the elected job's nodes."""
    after = seconds(str(option.arguments.get("after", "")))
    reservation = _Reservation(session, _AFTER if after is None else after)
    session.register(ExtensionPoint.TASK_CLASS, option, reservation.is_due)
    session.register(ExtensionPoint.PREDICATE, option, reservation.refuse)
    session.register(ExtensionPoint.ALLOCATABLE, option, reservation.leaves_share)


@dataclass(frozen=True, slots=True)
class _Election:
    """The elected job, its reserved nodes, and what its queue must keep for it beyond what it holds on these nodes."""

    job: JobInfo | None
    reserved: Mask
    share: Vector


class _Reservation:
    """The due jobs and the reservation; elected at the first query, when all plugins are registered."""

    def __init__(self, session: Session, after: float) -> None:
        self._session = session
        due = [job for job in session.jobs.values() if _waits(job, session.now - after)]
        self._due = sorted(due, key=lambda job: (-job.group.priority, job.group.created_at, job.group.uid))
        self._uids = {job.group.uid for job in due}
        self._election: _Election | None = None
        self._is_asking = False

    def is_due(self, pod: PodInfo) -> str:
        """The class key: each due job is a class of its own."""
        return pod.job.group.uid if pod.job.group.uid in self._uids else ""

    def refuse(self, pod: PodInfo, _table: NodeTable) -> list[Refusal]:
        election = self._outcome()
        if election is None or election.job in (None, pod.job):
            return []
        return [Refusal(election.reserved, "reserved for a job that waits longer", is_lasting=False)]

    def leaves_share(self, queue: QueueSpec, pod: PodInfo) -> bool:
        """Whether the elected job's queue would still have enough for it."""
        election = self._outcome()
        if election is None or election.job is None or election.job.is_ready:
            return True
        if election.job is pod.job or election.job.group.queue != queue.name:
            return True
        return self._may_hold(election.job, election.share + pod.request)

    def _outcome(self) -> _Election | None:
        """The election; None while it is being computed."""
        if self._is_asking:
            return None
        if self._election is None:
            self._election = self._elect()
        return self._election

    def _elect(self) -> _Election:
        found = ((job, self._rows(job)) for job in self._due[:_CANDIDATES])
        job, rows = next((one for one in found if one[1]), (None, []))
        reserved = np.zeros(len(self._session.table), dtype=bool)
        reserved[rows] = True
        share = np.zeros_like(self._session.total_resources)
        if job is not None:
            share = total_request(_needed(job), share) - self._held_by(job.group.queue, rows, share)
        return _Election(job, reserved, share)

    def _rows(self, job: JobInfo) -> list[int]:
        """The rows to reserve; none if the job could not start."""
        pods = _needed(job)
        nothing = np.zeros_like(self._session.total_resources)
        needed = total_request(pods, nothing)
        others = sum((g.allocated for g in self._session.jobs.values() if g.group.queue == job.group.queue), nothing)
        self._is_asking = True
        try:
            rows = _rows(self._session, pods)
        finally:
            self._is_asking = False
        return rows if self._may_hold(job, needed - others) else []

    def _held_by(self, queue: str, rows: Iterable[int], like: Vector) -> Vector:
        held = (m for row in rows for m in self._session.node_pods[row].values() if m.status in ALLOCATED)
        return total_request((m for m in held if m.job.group.queue == queue), like)

    def _may_hold(self, job: JobInfo, more: Vector) -> bool:
        """Whether the queue of the job may allocate so much more, as if one pod requested it."""
        queue = self._session.queues[job.group.queue]
        asker = copy(job.pods[0])
        asker.request = np.maximum(more, 0.0)
        self._is_asking = True
        try:
            return self._session.all_agree(ExtensionPoint.ALLOCATABLE, queue, asker)
        finally:
            self._is_asking = False


def _waits(job: JobInfo, before: float) -> bool:
    """Whether the job is admitted, was created before that time, and lacks pods to start."""
    missing = job.group.min_available - job.ready_count
    return job.is_admitted and missing > 0 and job.group.created_at <= before and bool(job.pending())


def _rows(session: Session, pods: Sequence[PodInfo]) -> list[int]:
    """The rows that would hold all these pods if they were empty; none if they do not suffice."""
    classes = {_class(pod): pod for pod in pods}
    node_fit = {key: NodeFit(pod, session.table, session.functions) for key, pod in classes.items()}
    left = Counter(_class(pod) for pod in pods)
    rows = []
    for row in _roomiest_first(session, pods):
        if not +left:
            break
        before = left.total()
        _fill(session.table.allocatable[row].copy(), left, [c for c in classes.items() if node_fit[c[0]].feasible[row]])
        if left.total() < before:
            rows.append(row)
    return [] if +left else rows


def _class(pod: PodInfo) -> Hashable:
    return pod.class_number, pod.spec.role


def _roomiest_first(session: Session, pods: Sequence[PodInfo]) -> list[int]:
    """Rows by the part of the requested resources that is or will be free, then by name."""
    table = session.table
    requested = np.any([pod.request > 0 for pod in pods], axis=0)
    whole = table.allocatable[:, requested]
    free = np.divide(table.future_idle()[:, requested], whole, out=np.zeros_like(whole), where=whole > 0).min(axis=1)
    return [int(row) for row in np.argsort(-free, kind="stable")]


def _fill(room: Vector, left: Counter[Hashable], classes: Sequence[tuple[Hashable, PodInfo]]) -> None:
    """Put as many of the remaining pods as fit into the room of an empty node."""
    for key, pod in classes:
        requested = pod.request > 0
        count = min(int(((room[requested] + EPSILON) // pod.request[requested]).min()), left[key])
        room -= count * pod.request
        left[key] -= count


def _needed(job: JobInfo) -> list[PodInfo]:
    """As many of its pending pods as it needs to start: each role's minimum first."""
    waiting = sorted(job.pending(), key=lambda m: (m.spec.role, m.spec.uid))
    by_role = Counter({role: -job.count_in_role(role, (PodStatus.RUNNING,)) for role in job.group.min_task_member})
    first: list[PodInfo] = []
    rest: list[PodInfo] = []
    for pod in waiting:
        by_role[pod.spec.role] += 1
        least = job.group.min_task_member.get(pod.spec.role, 0)
        (first if by_role[pod.spec.role] <= least else rest).append(pod)
    missing = job.group.min_available - job.ready_count
    return [*first, *rest][: max(missing, 1)]
