"""Allocate: place the pods of admitted jobs (`volcano-spec` §4).

A turn places one job up to its minimum, all or nothing; beyond the minimum each turn places one pod. After each turn,
queue and job return to their priority queues, so queues and jobs take turns.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from hekla.domain.phases import GangPhase
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine import hypernode_allocation, job_queues
from hekla.engine.decisions import PendingReason
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.infeasibility_cache import InfeasibilityCache
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import ALLOCATED, JobInfo, PodInfo
from hekla.engine.model import PodStatus, QueueSpec
from hekla.engine.pending_reasons import PendingReasons, why_no_room
from hekla.engine.policy import Argument
from hekla.engine.predicate_cache import PredicateErrorCache
from hekla.engine.priority_queue import HeapQueue, PriorityQueue
from hekla.engine.session import Session
from hekla.engine.statement import Statement

NEEDS = (
    Need(Input.JOB_TOPOLOGY, Lack.PART, gettext_noop("No job is placed within one hypernode.")),
    Need(Input.HYPERNODES, Lack.PART, gettext_noop("No job is placed within one hypernode.")),
    Need(Input.SUB_GROUPS, Lack.PART, gettext_noop("No part of a job is placed within one hypernode.")),
)


def execute(session: Session, arguments: Mapping[str, Argument]) -> None:
    """Run turns until no queue has a job that can be placed."""
    allocator = JobAllocator(session, arguments)
    jobs = _by_queue(session, allocator)
    queues: HeapQueue[QueueSpec] = HeapQueue(session.queue_before, (session.queues[name] for name in sorted(jobs)))
    while len(queues):
        queue = queues.pop()
        waiting = jobs[queue.name]
        if not len(waiting):
            continue
        if session.any_agrees(ExtensionPoint.OVERUSED, queue):
            _note_overused(session, queue, waiting)
            continue
        _allocate_next(session, allocator, waiting)
        queues.push(queue)


def _allocate_next(session: Session, allocator: "JobAllocator", waiting: PriorityQueue[JobInfo]) -> None:
    """Run turns of the queue's jobs until one changes something: without a change, the queue stays first.

    In Volcano one turn only, since the order of its heap of queues may differ.
    """
    table, is_over = session.table, False
    while not is_over and len(waiting):
        before, job = len(table.change_log), waiting.pop()
        if allocator.is_hopeless(job):
            session.copy_reasons(job, waiting.pop_equivalent())
        elif allocator.take(job):
            waiting.push(job)
        is_over = session.policy.follows_volcano or len(table.change_log) > before


def _by_queue(session: Session, allocator: "JobAllocator") -> dict[str, PriorityQueue[JobInfo]]:
    """The jobs of each queue that may be placed; in Volcano all valid ones, because they affect the order of ties."""
    if "enqueue" not in session.policy.actions:
        for job in session.unsettled_jobs.values():
            if job.phase is GangPhase.PENDING and not session.is_queue_draining(job):
                session.admit(job)
    unique, classes = job_queues.waiting_jobs(session)
    jobs = session.valid_jobs(among=unique)
    if not session.policy.follows_volcano:
        waiting = allocator.redeem([job for job in jobs if job.pending_count])
        jobs = [job for job in waiting if not allocator.is_hopeless(job)]
    return job_queues.queues_by_name(session, jobs, _feasible_classes(session, allocator, classes))


def _feasible_classes(
    session: Session, allocator: "JobAllocator", classes: Iterable[job_queues.Uids]
) -> Iterator[job_queues.Uids]:
    """The classes whose first job may be placed; records the reasons of the others.

    In job order: so those that are placed one after the other are scored together (`state_scores`).
    """
    firsts = ((session.jobs[uids[0]], uids) for uids in classes)
    admitted = ((first, uids) for first, uids in firsts if first.is_admitted)
    for first, uids in sorted(admitted, key=lambda one: session.rank(one[0])):
        if session.is_valid(first) and not allocator.is_hopeless(first):
            yield uids
        else:
            session.copy_reasons(first, uids)


class JobAllocator:
    """Runs the turns of jobs, and holds the pods that each job has left to place."""

    def __init__(self, session: Session, arguments: Mapping[str, Argument]) -> None:
        self._session, self._arguments = session, arguments
        self._pods: dict[str, deque[PodInfo]] = {}
        self._pending_reasons = PendingReasons(session)
        self._infeasible = InfeasibilityCache(session, self._pending_reasons)

    def is_hopeless(self, job: JobInfo) -> bool:
        """Whether its first turn would surely fail; records the reason."""
        if self._session.policy.follows_volcano or job.group.uid in self._pods:
            return False
        return self._infeasible.is_infeasible(job)

    def take(self, job: JobInfo) -> bool:
        """Run one turn. True if the job may have another."""
        session, queue = self._session, self._session.queues[job.group.queue]
        if job.uses_hypernodes:
            return hypernode_allocation.allocate_job(session, queue, job)
        if job.group.uid not in self._pods:
            self._pods[job.group.uid] = deque(session.sort_pods(job.pending()))
        pending = self._pods[job.group.uid]
        return bool(pending) and self._turn(queue, job, pending) and bool(pending)

    def _turn(self, queue: QueueSpec, job: JobInfo, pending: deque[PodInfo]) -> bool:
        """Place pods up to the minimum, or one more. True if the job is ready."""
        session, failures, statement = self._session, _Failures(job, self._pending_reasons), Statement(self._session)
        error_cache = PredicateErrorCache(session, job, self._arguments) if session.policy.follows_volcano else None
        is_ready = False
        while pending:
            pod = pending.popleft()
            if not session.all_agree(ExtensionPoint.ALLOCATABLE, queue, pod):
                failures.over_share.append(pod)
                continue
            session.attempted_pods.add(pod.spec.uid)
            if pod.spec.role in failures.no_node:
                continue
            best = session.best_node(pod, error_cache.feasible_rows(pod) if error_cache is not None else None)
            if best is None:
                failures.no_node[pod.spec.role] = pod
                if failures.are_final():
                    break
                continue
            statement.place(pod, best[0], now=best[1])
            if is_ready := session.is_ready(job):
                break
        failures.look()
        is_ready = is_ready or session.is_ready(job)
        if is_ready:
            statement.commit()
        elif not session.is_pipelined(job):
            statement.discard()
            self._infeasible.add(job, by_share=bool(failures.over_share))
        failures.note(session)
        return is_ready

    def redeem(self, jobs: list[JobInfo]) -> list[JobInfo]:
        """Place jobs with nominated nodes before all queues. Returns the jobs for the turns after that.

        In Volcano an evicted job may come back, take the room made by its eviction, and be evicted again, endlessly.
        """
        session = self._session
        promised: HeapQueue[JobInfo] = HeapQueue(session.job_before, filter(self._is_promised, jobs))
        waits: set[str] = set()
        while len(promised):
            job = promised.pop()
            while self.take(job) and self._is_promised(job):
                pass
            if session.is_ready(job):
                continue
            self._pods.pop(job.group.uid, None)
            if session.is_pipelined(job):
                waits.add(job.group.uid)
        return [job for job in jobs if job.group.uid not in waits]

    def _is_promised(self, job: JobInfo) -> bool:
        if not job.is_nominated:
            return False
        nodes = self._session.table.row_of
        return any(m.status is PodStatus.PENDING and m.spec.nominated_node in nodes for m in job.pods)


class _Failures:
    """Failures of one turn: pods without a node, by role, and pods over the queue's share."""

    def __init__(self, job: JobInfo, pending_reasons: PendingReasons) -> None:
        self._job, self._pending_reasons = job, pending_reasons
        self.no_node: dict[str, PodInfo] = {}
        self.over_share: list[PodInfo] = []
        self._reasons: tuple[PendingReason, ...] = ()

    def are_final(self) -> bool:
        """Whether the job cannot reach its minimum any more in this turn."""
        job, roles = self._job, self.no_node
        group = job.group
        if group.min_available >= job.size:
            return True
        if group.min_available < sum(group.min_task_member.values()):
            left = sum(m.spec.role not in roles for m in job.pending())
            return job.ready_count + job.waiting_count + left < group.min_available
        return any(group.min_task_member.get(role, 0) > job.count_in_role(role, ALLOCATED) for role in roles)

    def look(self) -> None:
        """Build the reasons while the turn's placements are still in force."""
        if self.no_node:
            self._reasons = tuple([self._pending_reasons.no_node_fits(self._job, pod) for pod in self.no_node.values()])

    def note(self, session: Session) -> None:
        """Record the reasons, once the turn is over."""
        if self.over_share:
            self._reasons += (self._pending_reasons.over_queue_share(self._job, self.over_share),)
        if self._reasons:
            session.reasons[self._job.group.uid] = self._reasons


def _note_overused(session: Session, queue: QueueSpec, waiting: PriorityQueue[JobInfo]) -> None:
    """Record for all waiting jobs that their queue is overused."""
    while len(waiting):
        job = waiting.pop()
        if pending := job.pending():
            missing = max(job.group.min_available - job.ready_count, 1)
            reason = why_no_room(session, queue, pending[:missing])
            session.reasons[job.group.uid] = (replace(reason, code="queue_overused", pods=len(pending)),)
            session.copy_reasons(job, waiting.pop_equivalent())
