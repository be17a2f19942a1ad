"""Reconcile a cluster whose own scheduler runs the jobs: submit new jobs, request actions, record states.

Level-triggered: requests follow from the rows and the objects in the cluster, so a new process continues after a crash.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services
from hekla.apps.jobs.facts import job_facts, spec_fault, spec_of, valid_spec
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
from hekla.controller import job_faults
from hekla.controller.lease_context import LeaseContext
from hekla.controller.observations import sighting
from hekla.controller.tenancy import apply_tenancy
from hekla.domain import queue_settings
from hekla.domain.lifecycle.delegated import is_restart, pending_request
from hekla.domain.phases import GangPhase, JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.scheduling.job_faults import JobFaults

log = logging.getLogger(__name__)
_ROUNDS = 3
_FOLLOWS = "follows"
_ENDS = {
    JobPhase.ABORTING: JobPhase.ABORTED,
    JobPhase.COMPLETING: JobPhase.COMPLETED,
    JobPhase.TERMINATING: JobPhase.TERMINATED,
}


def reconcile_delegated(
    cluster: Cluster, lease: LeaseContext, delegated: DelegatedScheduling, faults: JobFaults
) -> None:
    """Run rounds until there are no new pods. A pod gets its attempt number after its predecessor's end is recorded."""
    _keep_queues(cluster, delegated)
    for _ in range(_ROUNDS):
        _round(lease, delegated, faults)
        if not _count(cluster.pk, delegated):
            return


def _round(lease: LeaseContext, delegated: DelegatedScheduling, faults: JobFaults) -> None:
    now = clock.now()
    faults.release_due(now)
    reports = delegated.list_jobs()
    pods = _by_job(delegated.list_pods(fresh=lease.state.cursor is None))
    concerned = _concerned(lease.cluster_id, reports)
    ends = [job for job in concerned if _is_new_end(job, reports.get(job.uid.hex))]
    if ends and (_count(lease.cluster_id, delegated) or any(_seem_to_run(pods.get(job.uid.hex, [])) for job in ends)):
        pods = _by_job(delegated.list_pods(fresh=True))
    apply_tenancy(lease, {job.tenant_id: job.tenant.slug for job in concerned})
    lease.state.cursor = _FOLLOWS
    lease.state.delegated = {job.pk: lease.state.delegated.get(job.pk) for job in concerned}
    for job in concerned:
        lead = partial(_lead, lease, delegated, job, reports.get(job.uid.hex), pods.get(job.uid.hex, []))
        try:
            faults.attempt(job, "follow", lead, now)
        except BackendError as error:
            log.warning("could not go on with %s, will try again: %s", job, error)
    job_faults.record_faults(lease, faults, now=now)
    _forget_ended(lease, pods)


def _concerned(cluster_id: int, reports: Mapping[str, JobReport]) -> list[Job]:
    """Jobs that are unfinished in the rows or in the cluster, where people may resume a job without Hekla."""
    found = {job.uid.hex: job for job in [*jobs.unfinished(cluster_id), *jobs.ending(cluster_id)]}
    there = {uid for uid, report in reports.items() if not report.phase.is_final} - found.keys()
    return [*found.values(), *(jobs.by_uids(cluster_id, there) if there else ())]


def _is_new_end(job: Job, report: JobReport | None) -> bool:
    """Whether the job has ended since the last record, which counts its pods, also those without a number yet."""
    return report is not None and report.phase.is_final and not JobPhase(job.phase).is_final


def _seem_to_run(pods: Sequence[PodReport]) -> bool:
    """Whether a pod runs as far as the watch knows, which may be behind."""
    return not all(pod.observation.phase.is_final for pod in pods)


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
    """Request the action that is due, if any. Returns the state of the job."""
    status, restarted = _state_of(report), report.retry_count > job.retry_count
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
    """Resize a job whose size was changed in Hekla; the size of others is that in the cluster. Errors are logged."""
    may_change = (
        services.is_scalable(job)
        and not spec_fault(job)
        and (not report.phase.is_final or report.phase is JobPhase.ABORTED)
    )
    if may_change and job.revision > 1 and report.size != (size := DelegatedJobSize.of(spec_of(job))):
        try:
            delegated.resize(job.uid.hex, size, heartbeat=lease.ensure_leader)
        except BackendError as error:
            log.warning("could not change the size of %s, will try again: %s", job, error)


def _record(lease: LeaseContext, job: Job, status: DelegatedJobState | None, pods: Sequence[PodReport]) -> None:
    """Record the state, unless it equals the last recorded one and no time limit of the job has passed."""
    now = clock.now()
    here = (job.phase, job.reason, status, tuple(pods))
    if lease.state.delegated.get(job.pk) == here and not job_facts(job).is_out_of_time(now):
        return
    services.follow(lease.cluster_id, lease.epoch, job.pk, status, [_pod(pod) for pod in pods], now=now)
    lease.state.delegated[job.pk] = here


def _is_to_be_submitted(job: Job, pods: Sequence[PodReport]) -> bool:
    """Whether to submit the job: it is new, or was aborted before that and is resumed. Repeating it is harmless."""
    is_new = job.phase == JobPhase.PENDING and job.gang_phase == GangPhase.PENDING and not pods
    begins = job.phase == JobPhase.RESTARTING and is_restart(job.reason)
    return (is_new or begins) and job.deleted_at is None


def _submitted(delegated: DelegatedScheduling, job: Job) -> DelegatedJobState | None:
    try:
        delegated.submit(job.uid.hex, valid_spec(job), tenant=job.tenant.slug)
    except StartRefused as refusal:
        return DelegatedJobState(JobPhase.FAILED, GangPhase.COMPLETED, reason="StartRefused", message=str(refusal))
    return None


def _gone(phase: JobPhase) -> DelegatedJobState | None:
    """The state of a job missing in the cluster: ended if it was ending, else deleted by others."""
    if phase.is_final:
        return None
    if phase in _ENDS:
        return DelegatedJobState(_ENDS[phase], GangPhase.PENDING if phase is JobPhase.ABORTING else GangPhase.COMPLETED)
    message = "The job was deleted in the cluster."
    return DelegatedJobState(JobPhase.FAILED, GangPhase.COMPLETED, reason="Deleted", message=message)


def _state_of(report: JobReport) -> DelegatedJobState:
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
    """Assign attempt numbers to new pods. Returns whether there were any."""
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
    """Let the backend forget pods whose ends are in the rows; it saves their logs first."""
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
    """Apply all queues, parents first, because children name them."""
    known = queues.of_cluster(cluster)
    for queue in sorted(known, key=lambda queue: _depth(queue, known)):
        try:
            delegated.apply_queue(queue_order(queue))
        except BackendError as error:
            log.warning("could not keep queue %s, will try again: %s", queue, error)


def _depth(queue: Queue, known: Sequence[Queue]) -> int:
    """The number of ancestors. The bound ends the loop if rows form a cycle."""
    above = {one.pk: one.parent_id for one in known}
    depth, parent = 0, queue.parent_id
    while parent is not None and depth < len(known):
        depth, parent = depth + 1, above.get(parent)
    return depth


def queue_order(queue: Queue) -> QueueOrder:
    """The desired state of the queue in the cluster."""
    return QueueOrder(
        name=queue.name,
        weight=queue.weight,
        priority=queue.priority,
        reclaimable=queue.reclaimable,
        parent=queue.parent.name if queue.parent else "",
        capability=queue.capability,
        guarantee=queue.guarantee,
        deserved=queue.deserved,
        annotations=queue_settings.annotations(queue.settings),
        affinity=queue_settings.affinity(queue.settings),
    )
