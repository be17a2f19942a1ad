"""What the controller does for jobs between events: look again, settle stops."""

from collections.abc import Sequence
from datetime import datetime

from hekla.apps.clusters import leases
from hekla.apps.event_log.services import CONTROLLER, Actor, unit_of_work
from hekla.apps.jobs.facts import all_pod_facts, job_facts
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.observations import react
from hekla.apps.jobs.services.telling import tell
from hekla.apps.jobs.services.transitions import AddressOf, advance, enter_pod_phase, expire, write
from hekla.domain import events, lifecycle
from hekla.domain.lifecycle import overdue
from hekla.domain.phases import PodPhase
from hekla.domain.policies import LifecycleAction


def sync(cluster_id: int, epoch: int, job_id: int, *, address_of: AddressOf, now: datetime) -> bool:
    """Look at a job again: create the pods it lacks, move it on where facts allow. Returns whether it changed."""
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        job = Job.objects.select_for_update().get(pk=job_id)
        if job.cluster_id != cluster_id:  # it went elsewhere
            return False
        pods = list(job.pods.order_by("task", "index", "attempt"))
        if job_facts(job).is_out_of_time(now):
            return expire(job, pods, actor=CONTROLLER, now=now)
        late = overdue(job_facts(job), all_pod_facts(pods), now)
        action, target = late or (LifecycleAction.SYNC_JOB, None)
        return advance(job, pods, action, target=target, address_of=address_of, actor=CONTROLLER, now=now)


def would_sync(job: Job, pods: Sequence[Pod], now: datetime) -> bool:
    """Whether `sync` would do anything, by these rows: most looks find nothing to do, and then no row is locked."""
    facts, attempts = job_facts(job), all_pod_facts(pods)
    if facts.is_out_of_time(now) or overdue(facts, attempts, now):
        return True
    outcome = lifecycle.advance(facts, attempts, LifecycleAction.SYNC_JOB)
    stands = (job.phase, job.gang_phase, job.version, job.retry_count)
    would_stand = (outcome.phase, outcome.gang_phase, outcome.version, outcome.retry_count)
    says_else = (outcome.reason or outcome.message) and (outcome.reason[:64], outcome.message) != (
        job.reason,
        job.message,
    )
    return bool(outcome.steps or outcome.stop or outcome.create or stands != would_stand or says_else)


def settle(cluster_id: int, epoch: int, pod_ids: Sequence[int], *, address_of: AddressOf, now: datetime) -> None:
    """These pods were to be stopped and the backend never began them: they are over."""
    for pod in Pod.objects.filter(pk__in=pod_ids):
        with unit_of_work():
            leases.assert_held(cluster_id, epoch)
            job = Job.objects.select_for_update().get(pk=pod.job_id)
            pods = list(job.pods.order_by("task", "index", "attempt"))
            this = next(other for other in pods if other.pk == pod.pk)
            if not this.is_final:
                message = this.stop_reason
                enter_pod_phase(
                    job, this, PodPhase.FAILED, reason="Stopped", message=message, actor=CONTROLLER, now=now
                )
                this.save()
                react(job, pods, [this], address_of, now)


def end(job_id: int, *, actor: Actor, now: datetime) -> bool:
    """A part of the platform wishes a job's end, for good. Returns whether there was anything to end."""
    with unit_of_work():
        job = Job.objects.select_for_update().get(pk=job_id)
        if job.is_final or job.is_adopted:
            return False
        tell(job, events.JobCommanded(action=LifecycleAction.TERMINATE_JOB), actor=actor, now=now)
        if job.cluster.leads_jobs:
            return write(
                job,
                [],
                lifecycle.delegated.request(job_facts(job), LifecycleAction.TERMINATE_JOB),
                actor=actor,
                now=now,
            )
        return advance(job, list(job.pods.all()), LifecycleAction.TERMINATE_JOB, actor=actor, now=now)
