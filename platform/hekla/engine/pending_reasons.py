"""Builds the reasons of jobs that found no node or no queue share."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from hekla.domain.resources import Resources
from hekla.engine.decisions import Cause, PendingReason
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import PodStatus, QueueSpec
from hekla.engine.node_fit import FitError
from hekla.engine.session import Session

_TENTATIVE = frozenset({PodStatus.ALLOCATED, PodStatus.PIPELINED})

_UNEXPLAINED = PendingReason(Cause.CAPACITY, "", "", "unexplained")
"""For sessions that explain nothing."""


class PendingReasons:
    """Builds reasons from the current state of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def no_node_fits(self, job: JobInfo, pod: PodInfo) -> PendingReason:
        """The reason that no node fits this pod, nor any other of its role."""
        if not self._session.is_explained:
            return _UNEXPLAINED
        missing = missing_pods(job)
        fit_error = self._session.node_fit(pod).fit_error(self._session.dimensions)
        cause = Cause.CAPACITY if fit_error.has_feasible_node else Cause.CONSTRAINT
        starts_alone = missing <= 0 or job.group.min_available == 1
        mates = [] if starts_alone else _placed_tentatively(job)
        fitting, pods = self._fitting(job, pod, mates, fit_error)
        own = sum((mate.spec.request for mate in mates if mate.status is PodStatus.ALLOCATED), Resources())
        return PendingReason(
            cause=cause if starts_alone or cause is Cause.CONSTRAINT else Cause.GANG,
            action="allocate",
            plugin="predicates" if cause is Cause.CONSTRAINT else "resources",
            code="no_node_fits",
            need=pod.spec.request,
            have=fit_error.max_idle,
            free=fit_error.free + own,
            limit=fit_error.whole,
            pods=pods,
            fitting=fitting,
            usable=fit_error.feasible,
            nodes=fit_error.node_counts,
            ever=fit_error.fits_when_empty,
        )

    def _fitting(self, job: JobInfo, pod: PodInfo, mates: Sequence[PodInfo], fit_error: FitError) -> tuple[int, int]:
        """How many pods of its role would fit together, and how many of those that the gang lacks would not.

        Pods that are kept apart by constraints, and those beyond the minimum, are not counted beforehand.
        """
        role, missing = pod.spec.role, missing_pods(job)
        if missing <= 0:
            return 0, job.pending_in_role(role)
        placed = sum(mate.spec.role == role for mate in mates)
        lacking = missing + len(mates) if job.is_of_one_role else job.group.min_task_member.get(role, 0)
        wanted = max(lacking, placed + 1)
        slots = 0 if self._session.node_fit(pod).depends_on_pods else fit_error.slots
        fitting = min(placed + slots, wanted - 1)
        return fitting, wanted - fitting

    def over_queue_share(self, job: JobInfo, refused: Sequence[PodInfo]) -> PendingReason:
        """The reason that the queue has no share left for the refused pods.

        Need is what the job lacks to start, with the refused pods first; for a running job one pod.
        """
        if not self._session.is_explained:
            return _UNEXPLAINED
        refused_ids = {id(pod) for pod in refused}
        others = [pod for pod in job.pending() if id(pod) not in refused_ids]
        wanted = [*refused, *others][: max(missing_pods(job), 1)]
        return self._no_room(job, wanted, len(refused))

    def over_queue_share_alike(self, job: JobInfo, representative: PodInfo) -> PendingReason:
        """As `over_queue_share`, for a job whose waiting pods are all like this one."""
        if not self._session.is_explained:
            return _UNEXPLAINED
        wanted, pending = max(missing_pods(job), 1), job.pending_count
        return self._no_room(job, [representative] * min(wanted, pending), pending)

    def _no_room(self, job: JobInfo, wanted: list[PodInfo], pods: int) -> PendingReason:
        return replace(why_no_room(self._session, self._session.queues[job.group.queue], wanted), pods=pods)


def _placed_tentatively(job: JobInfo) -> list[PodInfo]:
    """The pods of a job below its minimum that have a node in this turn only."""
    if not any(job.count_by_status.get(status) for status in _TENTATIVE):
        return []
    return [pod for pod in job.pods if pod.status in _TENTATIVE]


def missing_pods(job: JobInfo) -> int:
    """How many more pods must be allocated or pipelined for the job to start."""
    return job.group.min_available - job.ready_count - job.waiting_count


def why_no_room(session: Session, queue: QueueSpec, pods: list[PodInfo]) -> PendingReason:
    """The first plugin's reason that the queue has no room for these pods."""
    if not session.is_explained:
        return _UNEXPLAINED
    for function in session.functions(ExtensionPoint.WHY_NOT_ALLOCATABLE):
        if reason := function(queue, pods):
            return cast(PendingReason, reason)
    return PendingReason(Cause.QUOTA, "allocate", "proportion", "queue_share_used", need=pods[0].spec.request)
