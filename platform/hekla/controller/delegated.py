"""A turn of a cluster that leads its jobs itself: submit what is new, pass wishes on, take down what it tells.

Level-triggered like all turns: what is to be asked follows from the rows and from what is there, so a process that
dies in between leaves nothing behind that the next one would not find.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services
from hekla.apps.jobs.facts import job_facts, spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.delegated_jobs import DelegatedJobState, DelegatedPodState
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.backends.base import BackendError, PodKey, StartRefused
from hekla.backends.delegated import (
    ActionUnsupported,
    DelegatedJobSize,
    DelegatedScheduling,
    JobReport,
    PodReport,
    QueueOrder,
)
from hekla.controller.lease_context import LeaseContext
from hekla.controller.observations import sighting
from hekla.domain.lifecycle.delegated import is_restart, pending_request
from hekla.domain.phases import GangPhase, JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

log = logging.getLogger(__name__)
_ROUNDS = 3
_FOLLOWS = "follows"
_ENDS = {
    JobPhase.ABORTING: JobPhase.ABORTED,
    JobPhase.COMPLETING: JobPhase.COMPLETED,
    JobPhase.TERMINATING: JobPhase.TERMINATED,
}


def reconcile_delegated(cluster: Cluster, lease: LeaseContext, delegated: DelegatedScheduling) -> None:
    """Rounds, until there are no new pods: one that takes another's name is counted when that one's end is down."""
    _keep_queues(cluster, delegated)
    for _ in range(_ROUNDS):
        _round(lease, delegated)
        if not _count(cluster.pk, delegated):
            return


def _round(lease: LeaseContext, delegated: DelegatedScheduling) -> None:
    reports = delegated.list_jobs()
    pods = _by_job(delegated.list_pods(fresh=lease.state.cursor is None))
    concerned = _concerned(lease.cluster_id, reports)
    if any(_ends_before_its_pods(job, reports.get(job.uid.hex), pods.get(job.uid.hex, [])) for job in concerned):
        pods = _by_job(delegated.list_pods(fresh=True))
    lease.state.cursor = _FOLLOWS
    lease.state.delegated = {job.pk: lease.state.delegated.get(job.pk) for job in concerned}
    for job in concerned:
        try:
            _lead(lease, delegated, job, reports.get(job.uid.hex), pods.get(job.uid.hex, []))
        except BackendError as error:
            log.warning("could not go on with %s, will try again: %s", job, error)
    _forget_ended(lease, pods)


def _concerned(cluster_id: int, reports: Mapping[str, JobReport]) -> list[Job]:
    """Jobs that go on here or there: somebody may have resumed one without us."""
    found = {job.uid.hex: job for job in [*jobs.unfinished(cluster_id), *jobs.ending(cluster_id)]}
    there = {uid for uid, report in reports.items() if not report.phase.is_final} - found.keys()
    return [*found.values(), *(jobs.by_uids(cluster_id, there) if there else ())]


def _ends_before_its_pods(job: Job, report: JobReport | None, pods: Sequence[PodReport]) -> bool:
    """Whether its end is new while pods of it seem to run: the watch of pods may be behind, and the end counts them."""
    is_new_end = report is not None and report.phase.is_final and not JobPhase(job.phase).is_final
    return is_new_end and not all(pod.observation.phase.is_final for pod in pods)


def _lead(
    lease: LeaseContext, delegated: DelegatedScheduling, job: Job, report: JobReport | None, pods: Sequence[PodReport]
) -> None:
    lease.ensure_leader()
    phase = JobPhase(job.phase)
    if report is None and _is_to_be_submitted(job, pods):
        status = _submitted(delegated, job)
    elif report is None:
        status = _gone(phase)
    else:
        status = _request_action(lease, delegated, job, report)
        _resize(lease, delegated, job, report)
    _record(lease, job, status, pods)


def _request_action(
    lease: LeaseContext, delegated: DelegatedScheduling, job: Job, report: JobReport
) -> DelegatedJobState:
    """How it stands, after it was asked for what is due."""
    status, restarted = _standing(report), report.retry_count > job.retry_count
    action = pending_request(JobPhase(job.phase), job.reason, report.phase, restarted=restarted)
    if action is None and report.is_stuck:
        action = LifecycleAction.SYNC_JOB
    if action is not None:
        try:
            delegated.request(job.uid.hex, action, restarts=report.retry_count, heartbeat=lease.ensure_leader)
        except ActionUnsupported as refusal:
            return replace(status, refusal=str(refusal))
    return status


def _resize(lease: LeaseContext, delegated: DelegatedScheduling, job: Job, report: JobReport) -> None:
    """Only jobs whose size a person changed here: that of others is what it is there. A refusal stops nothing else."""
    may_change = services.is_scalable(job) and (not report.phase.is_final or report.phase is JobPhase.ABORTED)
    if may_change and job.revision > 1 and report.size != (size := DelegatedJobSize.of(spec_of(job))):
        try:
            delegated.resize(job.uid.hex, size, heartbeat=lease.ensure_leader)
        except BackendError as error:
            log.warning("could not change the size of %s, will try again: %s", job, error)


def _record(lease: LeaseContext, job: Job, status: DelegatedJobState | None, pods: Sequence[PodReport]) -> None:
    """Unless it is what was taken down before, and nothing came between."""
    now = clock.now()
    here = (job.phase, job.reason, status, tuple(pods))
    if lease.state.delegated.get(job.pk) == here and not job_facts(job).is_out_of_time(now):
        return
    services.follow(lease.cluster_id, lease.epoch, job.pk, status, [_pod(pod) for pod in pods], now=now)
    lease.state.delegated[job.pk] = here


def _is_to_be_submitted(job: Job, pods: Sequence[PodReport]) -> bool:
    """It has not been there, or it was aborted before it ever was; a job that waits may be submitted once more."""
    is_new = job.phase == JobPhase.PENDING and job.gang_phase == GangPhase.PENDING and not pods
    begins = job.phase == JobPhase.RESTARTING and is_restart(job.reason)
    return (is_new or begins) and job.deleted_at is None


def _submitted(delegated: DelegatedScheduling, job: Job) -> DelegatedJobState | None:
    try:
        delegated.submit(job.uid.hex, spec_of(job))
    except StartRefused as refusal:
        return DelegatedJobState(JobPhase.FAILED, GangPhase.COMPLETED, reason="StartRefused", message=str(refusal))
    return None


def _gone(phase: JobPhase) -> DelegatedJobState | None:
    """There is no such job there: one that was to end has, another was deleted by somebody."""
    if phase.is_final:
        return None
    if phase in _ENDS:
        return DelegatedJobState(_ENDS[phase], GangPhase.PENDING if phase is JobPhase.ABORTING else GangPhase.COMPLETED)
    message = "Somebody deleted the job from the cluster."
    return DelegatedJobState(JobPhase.FAILED, GangPhase.COMPLETED, reason="Deleted", message=message)


def _standing(report: JobReport) -> DelegatedJobState:
    return DelegatedJobState(
        report.phase, report.gang_phase, report.retry_count, report.reason, report.message, report.waits
    )


def _pod(report: PodReport) -> DelegatedPodState:
    return DelegatedPodState(sighting(report.observation), report.node, report.is_stopping)


def _by_job(pods: Iterable[PodReport]) -> dict[str, list[PodReport]]:
    found: dict[str, list[PodReport]] = defaultdict(list)
    for pod in pods:
        found[pod.observation.key.job].append(pod)
    return found


def _count(cluster_id: int, delegated: DelegatedScheduling) -> bool:
    """Give new pods the numbers of their attempts. Returns whether there were any."""
    found = delegated.list_new_pods()
    known = {job.uid.hex: job.pk for job in jobs.by_uids(cluster_id, {pod.job for pod in found})} if found else {}
    last: dict[tuple[int, str, int], int] = {}
    for row in jobs.pods_of(list(known.values())) if known else ():
        last[row.job_id, row.task, row.index] = row.attempt
    for pod in found:
        if pod.job in known:
            attempt = last.get((known[pod.job], pod.task, pod.index), 0) + 1
            delegated.assign_attempt(pod, PodKey(pod.job, pod.task, pod.index, attempt))
    return bool(known)


def _forget_ended(lease: LeaseContext, pods: Mapping[str, Sequence[PodReport]]) -> None:
    """Ends that are in the rows need not be told again; their logs are kept then."""
    ended = [pod.observation.key for own in pods.values() for pod in own if pod.observation.phase.is_final]
    owners = (
        {job.pk: job.uid.hex for job in jobs.by_uids(lease.cluster_id, {key.job for key in ended})} if ended else {}
    )
    down = {
        PodKey(owners[pod.job_id], pod.task, pod.index, pod.attempt)
        for pod in (jobs.pods_of(list(owners)) if owners else ())
        if pod.is_final
    }
    lease.backend.forget([key for key in ended if key in down])


def _keep_queues(cluster: Cluster, delegated: DelegatedScheduling) -> None:
    """Those above others first, since these name them."""
    known = queues.of_cluster(cluster)
    for queue in sorted(known, key=lambda queue: _depth(queue, known)):
        try:
            delegated.apply_queue(queue_order(queue))
        except BackendError as error:
            log.warning("could not keep queue %s, will try again: %s", queue, error)


def _depth(queue: Queue, known: Sequence[Queue]) -> int:
    """How many are above it; rows that form a circle have an end here too."""
    above = {one.pk: one.parent_id for one in known}
    depth, parent = 0, queue.parent_id
    while parent is not None and depth < len(known):
        depth, parent = depth + 1, above.get(parent)
    return depth


def queue_order(queue: Queue) -> QueueOrder:
    """The queue as it is to be somewhere else."""
    return QueueOrder(
        name=queue.name,
        weight=queue.weight,
        priority=queue.priority,
        reclaimable=queue.reclaimable,
        parent=queue.parent.name if queue.parent else "",
        capability=queue.capability,
        guarantee=queue.guarantee,
        deserved=queue.deserved,
    )
