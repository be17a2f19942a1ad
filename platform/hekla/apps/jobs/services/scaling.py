"""Changes the size of a job: the replicas of its tasks, their minimum, and their autoscaling; by a person, or by
autoscaling.

New replicas have the next numbers, and the controller creates their pods when it reconciles next. Of surplus replicas
the last ones are stopped. That is a request like an abort: no policy treats it as a failure, and it is not a retry.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import leases
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import CONTROLLER, Actor, unit_of_work
from hekla.apps.jobs import job_rows, selectors
from hekla.apps.jobs.facts import job_facts, replicas, reserved_slots, spec_of, valid_spec
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services import quota
from hekla.apps.jobs.services.commands import require_right
from hekla.apps.jobs.services.submission import never_fitting
from hekla.apps.jobs.services.telling import tell
from hekla.apps.jobs.services.transitions import advance, new_slots
from hekla.domain import events, lifecycle, scaling
from hekla.domain.errors import Invalid, Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.scaling import JobScale

SCALABLE = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING, JobPhase.ABORTING, JobPhase.ABORTED})


class RevisionConflict(Refused):
    """Another person changed the job since it was read."""

    code = "changed_meanwhile"


def scale(job: Job, size: JobScale, *, user: User, now: datetime, expected_revision: int | None = None) -> Job:
    """Set the job's size; no effect if it has that size already.

    `expected_revision`: the one that the person saw. Raises Forbidden, Invalid, Refused, RevisionConflict.
    """
    require_right(job, user)
    with unit_of_work():
        job = changes.locked(job)
        _require_open(job, expected_revision)
        old, new = valid_spec(job), scaling.resize(valid_spec(job), size)
        sizes = scaling.size_changes(old, new)
        if changed := sizes | scaling.autoscaling_changes(old, new):
            _require_possible_there(job, old, sizes)
            _require_room(job, old, new)
            _change(job, new)
            recorded = {name: events.FieldChange(old=before, new=after) for name, (before, after) in changed.items()}
            _record(job, events.JobChanged(changes=recorded, revision=job.revision), sizes, actor_of(user), now)
    return job


@dataclass(frozen=True, slots=True)
class ScalingStep:
    """A new number of replicas that autoscaling found for a task at this revision of its job, and its reason.

    `utilization`: of the task's cards, in per cent; `target`: what it should be.
    """

    task: str
    replicas: int
    utilization: float
    target: int
    revision: int


def autoscale(cluster_id: int, epoch: int, job_id: int, step: ScalingStep, *, now: datetime) -> bool:
    """Apply the step, unless the job has changed or no longer runs. Returns whether it was applied.

    Raises Invalid if the job cannot have that size, LeaseLost.
    """
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        job = Job.objects.select_for_update().filter(pk=job_id, cluster=cluster_id).first()
        if job is None or job.revision != step.revision or job.phase != JobPhase.RUNNING or not is_scalable(job):
            return False
        old = valid_spec(job)
        new = scaling.resize(old, JobScale.parse({"tasks": {step.task: {"replicas": step.replicas}}}))
        sizes = scaling.size_changes(old, new)
        if not sizes:
            return False
        before = old.task(step.task).replicas
        _change(job, new)
        event = events.JobAutoscaled(
            task=step.task,
            old=before,
            new=step.replicas,
            utilization=round(step.utilization, 1),
            target=step.target,
            revision=job.revision,
        )
        _record(job, event, sizes, CONTROLLER, now)
    return True


def is_scalable(job: Job) -> bool:
    """Whether the job's size can still change."""
    return job.deleted_at is None and not job.is_external and JobPhase(job.phase) in SCALABLE


def remarks(job: Job, pods: Iterable[Pod] | None = None) -> tuple[str, ...]:
    """What the job's unfinished pods do not learn about a new size. `pods`: pass all of them if already read."""
    lives = selectors.has_living_pods(job) if pods is None else any(not pod.is_final for pod in pods)
    if not lives:
        return ()
    return scaling.remarks(spec_of(job), acts_on_updates=not job.cluster.leads_jobs)


def _require_open(job: Job, expected_revision: int | None) -> None:
    if job.is_external:
        raise Refused(_("The pods of this job are external. Their owner sets the number of pods."))
    if not is_scalable(job):
        raise Refused(_("The job has finished. Clone it to run it with another size."))
    require_unchanged(job, expected_revision)


def _require_possible_there(job: Job, old: JobSpec, sizes: Mapping[str, tuple[int, int]]) -> None:
    """Volcano cannot change the number of partitions of a task. Raises Refused."""
    divided = [task.name for task in old.tasks if task.partition_size and f"{task.name}.replicas" in sizes]
    if job.cluster.leads_jobs and divided:
        raise Refused(
            _("Volcano schedules this job and cannot change the partitions of a task. %(task)s keeps its replicas.")
            % {"task": divided[0]}
        )


def require_unchanged(job: Job, expected_revision: int | None) -> None:
    """Raises RevisionConflict if the job has another revision than the expected one."""
    if expected_revision is not None and expected_revision != job.revision:
        raise RevisionConflict(
            _("The job was changed by another person meanwhile. Check the current values, then submit again.")
        )


def _require_room(job: Job, old: JobSpec, new: JobSpec) -> None:
    """Raises Invalid if a raised minimum does not fit the job's queue, cluster or quotas; more need not fit."""
    if new.minimum_resources().fits_in(old.minimum_resources()):
        return
    if problems := [*never_fitting(new, job.queue), *quota.never_fitting(new, tenant=job.tenant, user=job.owner)]:
        raise Invalid(problems)


def _change(job: Job, new: JobSpec) -> None:
    """Store the new size, and reserve addresses for new replicas."""
    pods = job_rows.pods_of(job)
    known = reserved_slots(job) | {(pod.task, pod.index): pod.slot for pod in pods}
    job.spec, job.replicas, job.revision = new.document(), new.replicas, job.revision + 1
    job.spec_in_hand = new
    if known:
        job.reserved_slots = _slots(job, known)
    job.save(update_fields=["spec", "replicas", "revision", "reserved_slots"])


def _record(job: Job, event: events.Event, sizes: Mapping[str, tuple[int, int]], actor: Actor, now: datetime) -> None:
    """Record the change of the size, and what follows for the job and its pods."""
    tell(job, event, actor=actor, now=now)
    if job.cluster.leads_jobs:
        return  # the controller passes it to Volcano, and follows the result
    pods = job_rows.pods_of(job)
    _follow(job, pods, [task.name for task in spec_of(job).tasks if f"{task.name}.replicas" in sizes], actor, now)


def _slots(job: Job, known: Mapping[tuple[str, int], int]) -> list[int]:
    """The slots of all replicas, so that pods that start before the new ones know the addresses of these."""
    wanted = replicas(job)
    missing = [replica for replica in wanted if replica not in known]
    slots = {**known, **dict(zip(missing, new_slots(len(missing)), strict=True))}
    return [slots[replica] for replica in wanted]


def _follow(job: Job, pods: list[Pod], tasks: list[str], actor: Actor, now: datetime) -> None:
    """Apply the policies about a change of these tasks if the job has unfinished pods, then reconcile."""
    for task in tasks if any(not pod.is_final for pod in pods) else ():
        stimulus = lifecycle.resized(job_facts(job), task)
        if stimulus and stimulus.command:
            advance(job, pods, stimulus.command, target=stimulus.target, by_person=True, actor=actor, now=now)
    advance(job, pods, LifecycleAction.SYNC_JOB, actor=actor, now=now)
