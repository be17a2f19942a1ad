"""Builds the reasons of jobs that found no node or no queue share."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from hekla.engine.decisions import Cause, PendingReason
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import QueueSpec
from hekla.engine.session import Session


class PendingReasons:
    """Builds reasons from the current state of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def no_node_fits(self, job: JobInfo, pod: PodInfo) -> PendingReason:
        """The reason that no node fits this pod, nor any other of its role."""
        missing = missing_pods(job)
        pods = max(missing, job.pending_in_role(pod.spec.role) if missing <= 0 else 0)
        standing = self._session.node_fit(pod).fit_error(self._session.dimensions)
        cause = Cause.CAPACITY if standing.has_feasible_node else Cause.CONSTRAINT
        starts_alone = missing <= 0 or job.group.min_available == 1
        return PendingReason(
            cause=cause if starts_alone or cause is Cause.CONSTRAINT else Cause.GANG,
            action="allocate",
            plugin="predicates" if cause is Cause.CONSTRAINT else "resources",
            code="no_node_fits",
            need=pod.spec.request,
            have=standing.max_idle,
            pods=pods,
            nodes=standing.node_counts,
            ever=standing.fits_when_empty,
        )

    def over_queue_share(self, job: JobInfo, refused: Sequence[PodInfo]) -> PendingReason:
        """The reason that the queue has no share left for the refused pods.

        Need is what the job lacks to start, with the refused pods first; for a running job one pod.
        """
        refused_ids = {id(pod) for pod in refused}
        others = [pod for pod in job.pending() if id(pod) not in refused_ids]
        wanted = [*refused, *others][: max(missing_pods(job), 1)]
        return self._no_room(job, wanted, len(refused))

    def over_queue_share_alike(self, job: JobInfo, representative: PodInfo) -> PendingReason:
        """As `over_queue_share`, for a job whose waiting pods are all like this one."""
        wanted, pending = max(missing_pods(job), 1), job.pending_count
        return self._no_room(job, [representative] * min(wanted, pending), pending)

    def _no_room(self, job: JobInfo, wanted: list[PodInfo], pods: int) -> PendingReason:
        return replace(why_no_room(self._session, self._session.queues[job.group.queue], wanted), pods=pods)


def missing_pods(job: JobInfo) -> int:
    """How many more pods must be allocated or pipelined for the job to start."""
    return job.group.min_available - job.ready_count - job.waiting_count


def why_no_room(session: Session, queue: QueueSpec, pods: list[PodInfo]) -> PendingReason:
    """The first plugin's reason that the queue has no room for these pods."""
    for function in session.functions(ExtensionPoint.WHY_NOT_ALLOCATABLE):
        if reason := function(queue, pods):
            return cast(PendingReason, reason)
    return PendingReason(Cause.QUOTA, "allocate", "proportion", "queue_share_used", need=pods[0].spec.request)
