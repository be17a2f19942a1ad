"""Records of the controller between commands: observations of pods by a backend, and their effect on jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction

from hekla.apps.clusters import leases
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs import job_rows
from hekla.apps.jobs.facts import all_pod_facts, job_facts, pod_facts
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.transitions import AddressOf, advance, enter_pod_phase, expire
from hekla.apps.jobs.signals import preparation_changed
from hekla.apps.rows import save_all
from hekla.domain import lifecycle
from hekla.domain.lifecycle import overdue, resolve, stimuli_of
from hekla.domain.phases import PodPhase
from hekla.domain.policies import LifecycleAction

POD_FIELDS = ("phase", "reason", "message", "exit_code", "cpus", "started_at", "finished_at")
"""The fields that change with a pod's phase."""
ORDER = {
    PodPhase.PENDING: 0,
    PodPhase.BOUND: 1,
    PodPhase.PREPARING: 2,
    PodPhase.RUNNING: 3,
    PodPhase.SUCCEEDED: 4,
    PodPhase.FAILED: 4,
    PodPhase.LOST: 4,
}


@dataclass(frozen=True, slots=True)
class Sighting:
    """An observation of one pod at the time `at`. `cpus`: those that it has for itself; empty: none, or not known."""

    task: str
    index: int
    attempt: int
    phase: PodPhase
    at: datetime
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    cpus: str = ""


def observe(
    cluster_id: int, epoch: int, job: UUID, sightings: Sequence[Sighting], *, address_of: AddressOf, now: datetime
) -> bool:
    """Record what is new about one job's pods. A pod's phase only moves forward.

    Returns whether anything was new. Raises LeaseLost.
    """
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        row = job_rows.locked_by_uid(job)
        if row is None:
            return False
        pods = job_rows.pods_of(row)
        by_ref = {(pod.task, pod.index, pod.attempt): pod for pod in pods}
        changed: list[Pod] = []
        for sighting in sightings:
            pod = by_ref.get((sighting.task, sighting.index, sighting.attempt))
            if pod is not None and ORDER[sighting.phase] > ORDER[PodPhase(pod.phase)]:
                record_observation(row, pod, sighting)
                changed.append(pod)
        if changed:
            save_all(changed, POD_FIELDS)
            react(row, pods, changed, address_of, now)
        return bool(changed)


def note_preparation(cluster_id: int, epoch: int, messages: Mapping[int, str]) -> None:
    """Record what is known about pods that prepare, by their primary keys. Raises LeaseLost.

    No events: there may be many such messages. A signal tells open pages.
    """
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        for pod, message in messages.items():
            Pod.objects.filter(pk=pod, phase=PodPhase.PREPARING).update(message=message)
        changed = partial(preparation_changed.send, sender=None, pods=frozenset(messages))
        transaction.on_commit(changed, robust=True)


def record_observation(job: Job, pod: Pod, sighting: Sighting) -> None:
    """Move one pod to its observed phase (not saved yet), through RUNNING if it ended with an exit code."""
    pod.cpus = sighting.cpus or pod.cpus
    if sighting.phase.is_final and pod.started_at is None and sighting.exit_code is not None:
        enter_pod_phase(job, pod, PodPhase.RUNNING, actor=CONTROLLER, now=sighting.at)
    enter_pod_phase(
        job,
        pod,
        sighting.phase,
        reason=sighting.reason,
        message=sighting.message,
        exit_code=sighting.exit_code,
        actor=CONTROLLER,
        now=sighting.at,
    )


def react(job: Job, pods: list[Pod], changed: list[Pod], address_of: AddressOf, now: datetime) -> None:
    """Apply the job's policies to these changes of pods, then advance the job."""
    while changed:
        changed = _act(job, pods, changed, address_of, now)
    advance(job, pods, LifecycleAction.SYNC_JOB, address_of=address_of, actor=CONTROLLER, now=now)


def _act(job: Job, pods: list[Pod], changed: list[Pod], address_of: AddressOf, now: datetime) -> list[Pod]:
    """Apply the first action that these changes trigger. Returns the pods after it, which must be evaluated again."""
    facts = job_facts(job)
    stimuli = stimuli_of(facts, all_pod_facts(pods), [pod_facts(pod) for pod in changed])
    for place, stimulus in enumerate(stimuli, start=1):
        action = resolve(facts, stimulus)
        if action is not LifecycleAction.SYNC_JOB:
            advance(job, pods, action, target=stimulus.target, address_of=address_of, actor=CONTROLLER, now=now)
            return changed[place:]
    return []


def sync(cluster_id: int, epoch: int, job_id: int, *, address_of: AddressOf, now: datetime) -> bool:
    """Reconcile a job: create missing pods, and advance it where possible.

    Returns whether it changed. Raises LeaseLost.
    """
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        job = job_rows.locked(job_id)
        if job.cluster_id != cluster_id:  # it moved to another cluster
            return False
        pods = job_rows.pods_of(job)
        if job_facts(job).is_out_of_time(now):
            return expire(job, pods, actor=CONTROLLER, now=now)
        late = overdue(job_facts(job), all_pod_facts(pods), now)
        action, target = late or (LifecycleAction.SYNC_JOB, None)
        return advance(job, pods, action, target=target, address_of=address_of, actor=CONTROLLER, now=now)


def would_sync(job: Job, pods: Sequence[Pod], now: datetime) -> bool:
    """Whether `sync` would change anything, by these rows. Usually it would not, and then no row is locked."""
    facts, attempts = job_facts(job), all_pod_facts(pods)
    if facts.is_out_of_time(now) or overdue(facts, attempts, now):
        return True
    outcome = lifecycle.advance(facts, attempts, LifecycleAction.SYNC_JOB, now=now)
    stands = (job.phase, job.gang_phase, job.version, job.retry_count)
    would_stand = (outcome.phase, outcome.gang_phase, outcome.version, outcome.retry_count)
    says_else = (outcome.reason or outcome.message) and (outcome.reason[:64], outcome.message) != (
        job.reason,
        job.message,
    )
    return bool(outcome.steps or outcome.stop or outcome.create or stands != would_stand or says_else)


def end_unstarted(cluster_id: int, epoch: int, pod_ids: Sequence[int], *, address_of: AddressOf, now: datetime) -> None:
    """End these pods, which were to be stopped and never started by the backend. Raises LeaseLost."""
    for pod in Pod.objects.filter(pk__in=pod_ids):
        with unit_of_work():
            leases.assert_held(cluster_id, epoch)
            job = job_rows.locked(pod.job_id)
            pods = job_rows.pods_of(job)
            this = next(other for other in pods if other.pk == pod.pk)
            if not this.is_final:
                message = this.stop_reason
                enter_pod_phase(
                    job, this, PodPhase.FAILED, reason="Stopped", message=message, actor=CONTROLLER, now=now
                )
                this.save(update_fields=POD_FIELDS)
                react(job, pods, [this], address_of, now)
