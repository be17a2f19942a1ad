"""Allocates a job hypernode by hypernode (`volcano-spec` §4, allocateForJob).

Hypernodes come in lists, the closest first. In a hypernode the sub-jobs are placed one by one, each in the best
descendant that holds its minimum. Every try is rolled back; the best try of the first list with a result is repeated.
"""

from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from hekla.engine.columns import fits
from hekla.engine.decisions import Cause, PendingReason
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.hypernodes import HyperNodeInfo, PodDistribution
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import PodStatus, QueueSpec
from hekla.engine.priority_queue import HeapQueue
from hekla.engine.session import Session
from hekla.engine.statement import Operation, Statement
from hekla.engine.subjobs import SubJobInfo, subjobs_of


def allocate_job(session: Session, queue: QueueSpec, job: JobInfo) -> bool:
    """Run one turn of a job with a network topology. True if it may have another."""
    if not job.pending():
        return False
    if fault := _topology_fault(session, job):
        session.reasons[job.group.uid] = (_not_followed(job, fault),)
        return False
    statement = Statement(session)
    is_placed = HyperNodeAllocator(session, queue, job, statement).allocate()
    if not is_placed:
        session.reasons[job.group.uid] = (_no_hypernode_fits(session, job),)
    if is_placed and session.is_ready(job):
        statement.commit()
        return bool(job.pending())
    if not session.is_pipelined(job):
        statement.discard()
    return False


def _topology_fault(session: Session, job: JobInfo) -> str:
    """Why the job's hard topology cannot be followed; empty if it can. Volcano then places its pods anywhere.

    Without hypernodes, the whole cluster counts as close.
    """
    topology, hypernodes = job.group.topology, session.hypernodes.all[:-1]
    if topology is None or not topology.is_hard or not hypernodes or session.policy.follows_volcano:
        return ""
    if not session.functions(ExtensionPoint.HYPERNODE_GRADIENT):
        return "no_topology_plugin"
    is_known = topology.highest_tier_name in ("", *(hypernode.tier_name for hypernode in hypernodes))
    return "" if is_known else "unknown_tier"


def _not_followed(job: JobInfo, code: str) -> PendingReason:
    return PendingReason(
        cause=Cause.POLICY,
        action="allocate",
        plugin="network-topology-aware",
        code=code,
        need=job.pending()[0].spec.request,
        pods=max(job.group.min_available - job.ready_count, 1),
        ever=False,
    )


def _no_hypernode_fits(session: Session, job: JobInfo) -> PendingReason:
    pending = job.pending()
    missing = job.group.min_available - job.ready_count - job.waiting_count
    return PendingReason(
        cause=Cause.CAPACITY,
        action="allocate",
        plugin="network-topology-aware",
        code="no_domain_fits",
        need=pending[0].spec.request,
        pods=max(missing, 1),
        nodes=session.node_fit(pending[0]).fit_error(session.dimensions).node_counts,
    )


MAX_COMPARED = 8
"""The maximum number of feasible hypernodes to compare."""


@dataclass(frozen=True, slots=True)
class HyperNodePlacement:
    """The result of a try in one hypernode."""

    is_ready: bool
    score: float
    steps: list[Operation]


class HyperNodeAllocator:
    """Allocates one job, tentatively, on a statement."""

    def __init__(self, session: Session, queue: QueueSpec, job: JobInfo, statement: Statement) -> None:
        self._session, self._queue, self._job, self._statement = session, queue, job, statement
        self._subjobs = subjobs_of(job)

    def allocate(self) -> bool:
        """Place as many pods as one turn may, in the best hypernode. False if nothing was placed."""
        session = self._session
        nominated = self._nominated_hypernode()
        if nominated is not None and self.allocate_in(nominated):
            return True
        if not self._job.group.sub_groups:
            return self._place_whole(session.hypernodes.top)
        for hypernodes in session.hypernode_gradient(self._job, session.hypernodes.top):
            tries = (
                found for hypernode in self._in_try_order(hypernodes) if (found := self._try(hypernode)) is not None
            )
            outcomes = list(islice(tries, None if session.policy.follows_volcano else MAX_COMPARED))
            if outcomes:
                self._statement.recover(max(outcomes, key=self._rank).steps)
                return True
        return False

    def _nominated_hypernode(self) -> HyperNodeInfo | None:
        """The hypernode in which other pods were evicted for the job, if any."""
        rows = self._session.table.row_of
        wanted = (pod.spec.nominated_node for pod in self._job.pending())
        found = PodDistribution(
            self._session.hypernodes, (rows[node] for node in wanted if node in rows)
        ).lowest_common()
        if found is None or not self._job.group.sub_groups:
            return found
        allowed = self._session.hypernode_gradient(self._job, self._session.hypernodes.top)
        return found if any(found is hypernode for hypernodes in allowed for hypernode in hypernodes) else None

    def allocate_in(self, hypernode: HyperNodeInfo) -> bool:
        """As `allocate`, in the given hypernode."""
        if not self._job.group.sub_groups:
            return self._place_whole(hypernode)
        outcome = self._try(hypernode)
        if outcome is not None:
            self._statement.recover(outcome.steps)
        return outcome is not None

    def _place_whole(self, hypernode: HyperNodeInfo) -> bool:
        """Place a job without sub-group policies as its only sub-job."""
        return any(self._place(subjob, hypernode) is not None for subjob in self._subjobs if subjob.pending())

    def _in_try_order(self, hypernodes: list[HyperNodeInfo]) -> list[HyperNodeInfo]:
        """The fullest hypernode first, so that few tries suffice; in Volcano unchanged."""
        if self._session.policy.follows_volcano:
            return hypernodes
        idle, whole = self._session.table.idle, self._session.table.allocatable
        return sorted(
            hypernodes, key=lambda d: float((idle[d.rows].sum(axis=0) / (whole[d.rows].sum(axis=0) + 1)).mean())
        )

    def _rank(self, outcome: HyperNodePlacement) -> tuple[bool, float]:
        """The sort key of a result: room now first (not in Volcano), then the score."""
        return outcome.is_ready and not self._session.policy.follows_volcano, outcome.score

    def _try(self, hypernode: HyperNodeInfo) -> HyperNodePlacement | None:
        mark = len(self._statement)
        score = self._place_subjobs(hypernode)
        is_ready = self._session.is_ready(self._job)
        is_good = score is not None and (is_ready or self._session.is_pipelined(self._job))
        outcome = (
            HyperNodePlacement(is_ready, score, self._statement.save(mark)) if is_good and score is not None else None
        )
        self._statement.discard(mark)
        return outcome

    def _place_subjobs(self, hypernode: HyperNodeInfo) -> float | None:
        """Place sub-jobs in order until the job is ready. Returns the sum of their scores; None if none was placed."""
        total: float | None = None
        waiting = self._subjob_queue()
        while len(waiting):
            subjob = waiting.pop()
            score = self._place(subjob, hypernode)
            if score is None:
                continue
            total = (total or 0.0) + score
            if self._session.is_ready(self._job):
                break
            if subjob.pending():
                waiting.push(subjob)
        return total

    def _subjob_queue(self) -> HeapQueue[SubJobInfo]:
        """The sub-jobs in order; first those that the job needs to start."""
        ordered: HeapQueue[SubJobInfo] = HeapQueue(
            self._session.subjob_before, (g for g in self._subjobs if g.pending())
        )
        is_ready = self._session.is_subjob_ready
        missing = [self._subjobs.missing(index, is_ready) for index in range(len(self._job.group.sub_groups))]
        needed: set[SubJobInfo] = set()
        rest: list[SubJobInfo] = []
        while len(ordered):
            subjob = ordered.pop()
            rest.append(subjob)
            if subjob.policy is not None and missing[subjob.policy_index] > 0 and not is_ready(subjob):
                missing[subjob.policy_index] -= 1
                needed.add(subjob)
        return HeapQueue(partial(self._before, needed), rest)

    def _before(self, needed: set[SubJobInfo], left: SubJobInfo, right: SubJobInfo) -> bool:
        if (left in needed) != (right in needed):
            return left in needed
        return self._session.subjob_before(left, right)

    def _place(self, subjob: SubJobInfo, hypernode: HyperNodeInfo) -> float | None:
        """Place a sub-job's minimum, or one more pod, in its best hypernode. Returns its score; None: no fit."""
        for hypernodes in self._session.hypernode_gradient(subjob, hypernode):
            score = self._place_in_best(subjob, self._large_enough(subjob, hypernodes))
            if score is not None:
                return score
        return None

    def _place_in_best(self, subjob: SubJobInfo, left: list[HyperNodeInfo]) -> float | None:
        """As `_place`, among these hypernodes; those with room now first (not in Volcano)."""
        mark, later = len(self._statement), None
        while left:
            scores = self._session.hypernode_scores(subjob, left)
            at = int(scores.argmax())
            if not self._place_tasks(subjob, left.pop(at)):
                continue
            if self._session.policy.follows_volcano or self._is_placed_now(subjob, mark):
                return float(scores[at])
            tried = self._statement.save(mark)
            self._statement.discard(mark)
            if later is None:
                later = HyperNodePlacement(is_ready=False, score=float(scores[at]), steps=tried)
                left = [hypernode for hypernode in left if self._may_have_room_now(subjob, hypernode)]
        if later is None:
            return None
        self._statement.recover(later.steps)
        return later.score

    def _is_placed_now(self, subjob: SubJobInfo, mark: int) -> bool:
        """Whether the last placement got idle room, and the sub-job its minimum."""
        *_, status = self._statement.save(mark)[-1]
        return status is PodStatus.ALLOCATED and self._session.is_subjob_ready(subjob)

    def _may_have_room_now(self, subjob: SubJobInfo, hypernode: HyperNodeInfo) -> bool:
        """Whether the sum of idle resources suffices; if not, a try is useless."""
        table, pending = self._session.table, subjob.pending()
        smallest = np.minimum.reduce([pod.request for pod in pending])
        return bool(fits(smallest * max(_missing(subjob, pending), 1), table.idle[hypernode.rows].sum(axis=0)))

    def _large_enough(self, subjob: SubJobInfo, hypernodes: list[HyperNodeInfo]) -> list[HyperNodeInfo]:
        """The hypernodes with enough slots for what is missing, if all waiting pods are of one class; else all."""
        pending = subjob.pending()
        found = {id(node_fit): node_fit for node_fit in map(self._session.node_fit, pending)}
        if len(found) != 1:
            return list(hypernodes)
        (node_fit,), needed = found.values(), _missing(subjob, pending)
        return [hypernode for hypernode in hypernodes if node_fit.count_slots(hypernode.rows) >= needed]

    def _place_tasks(self, subjob: SubJobInfo, hypernode: HyperNodeInfo) -> bool:
        session, statement = self._session, self._statement
        mark, full_for = len(statement), set[str]()
        for pod in session.sort_pods(subjob.pending()):
            if pod.spec.role in full_for or not session.all_agree(ExtensionPoint.ALLOCATABLE, self._queue, pod):
                continue
            best = session.best_node_in(pod, hypernode)
            if best is None:
                full_for.add(pod.spec.role)
                if subjob.min_available >= len(subjob.pods):
                    break
                continue
            statement.place(pod, best[0], now=best[1])
            if session.is_subjob_ready(subjob):
                return True
        if len(statement) > mark and session.is_subjob_pipelined(subjob):
            return True
        statement.discard(mark)
        return False


def _missing(subjob: SubJobInfo, pending: list[PodInfo]) -> int:
    """How many more pods the sub-job needs for its minimum."""
    placed = sum(m.status is not PodStatus.PENDING or m.best_effort for m in subjob.pods)
    return min(subjob.min_available - placed, len(pending))
