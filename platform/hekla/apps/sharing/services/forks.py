"""Forks: a job with the same specification, and a copy of the files of one pod."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.jobs.clone import clone_job
from hekla.apps.jobs.debug_spec import FILES_TASK, files_spec
from hekla.apps.jobs.models import Pod
from hekla.apps.sharing.models import ForkState, JobFork
from hekla.apps.sharing.services.telling import place, tell
from hekla.apps.sharing.wake import copying
from hekla.domain import events
from hekla.domain.errors import Refused
from hekla.domain.job_kinds import SESSION
from hekla.domain.phases import FINAL_JOB_PHASES, PodPhase

_ABANDONED = timedelta(minutes=5)
"""A copy that takes longer has lost its worker, and begins again."""
_AT_ONCE = 5
_ONLY_FILES = Q(task=FILES_TASK, index=0, job__kind=SESSION)
_LONGEST_MESSAGE = 500


def fork(source: Pod, *, tool: str = "", only_files: bool = False, user: User, now: datetime) -> JobFork:
    """Submit a job like that of this pod. The files of the pod are copied once it runs; then `tool` opens, if any.

    `only_files`: its one pod runs no program, and has no cards; its files can be looked at, for at most eight hours.

    Raises NotFound, Forbidden, and Refused as for a submission.
    """
    source = jobs.pod(source.pk, user)
    job = source.job
    if job.is_external:
        raise Refused(_("The pods of this job are external. Hekla cannot submit them again."))
    clone = clone_job(job, job.tenant)
    spec = files_spec(job, source, clone.spec.name) if only_files else clone.spec
    if clone.secrets and not only_files:
        raise Refused(_("This job has secrets, which a fork does not get. Use “Edit and run again” and enter them."))
    with unit_of_work():
        made = job_services.submit(spec=spec, tenant=job.tenant, user=user, now=now)
        found = JobFork.objects.create(job=made, source=source, person=user, tool=tool, created_at=now)
        event = events.JobForked.model_validate({**place(source), "name": made.name, "fork": str(made.uid)})
        tell(source, event, actor=actor_of(user), now=now)
        transaction.on_commit(copying.soon, robust=True)
    return found


def claim_forks(*, now: datetime) -> list[tuple[JobFork, Pod]]:
    """The forks whose files can be copied now, each with the pod to copy to. They belong to the caller for a while."""
    claimed: list[tuple[JobFork, Pod]] = []
    with unit_of_work():
        free = Q(claimed_at=None) | Q(claimed_at__lt=now - _ABANDONED)
        waiting = JobFork.objects.filter(free, _can_go_on(), ended_at=None).order_by("created_at")
        found = waiting.select_related("source__job__cluster", "source__job__tenant", "person", "job")
        for one in found.select_for_update(of=("self",), skip_locked=True)[:_AT_ONCE]:
            target = _target(one)
            if target is not None:
                one.state, one.claimed_at = ForkState.COPYING, now
                one.save(update_fields=["state", "claimed_at"])
                claimed.append((one, target))
            elif target is None and one.job.phase in FINAL_JOB_PHASES:
                _finish(one, message=_("The job ended before its files could be copied."), now=now)
    return claimed


def finish_fork(
    found: JobFork, *, files: int = 0, size: int = 0, left_out: int = 0, message: str = "", now: datetime
) -> None:
    """Record what was copied, or with a message why not."""
    with unit_of_work():
        found = JobFork.objects.select_for_update(of=("self",)).get(pk=found.pk)
        found.files, found.size, found.left_out = files, size, left_out
        _finish(found, message=message, now=now)


def _finish(found: JobFork, *, message: str, now: datetime) -> None:
    found.state = ForkState.FAILED if message else ForkState.DONE
    found.message, found.ended_at = message[:_LONGEST_MESSAGE], now
    found.save(update_fields=["state", "message", "ended_at", "files", "size", "left_out"])


def _can_go_on() -> Q:
    """Its pod runs, or its job has ended. Most forks that wait do so for their turn in a queue."""
    place = Q(task=OuterRef("source__task"), index=OuterRef("source__index")) | _ONLY_FILES
    running = Pod.objects.filter(place, job=OuterRef("job"), phase=PodPhase.RUNNING)
    return Q(Exists(running)) | Q(job__phase__in=[str(phase) for phase in FINAL_JOB_PHASES])


def _target(found: JobFork) -> Pod | None:
    """The running pod in the place of the source, or that of a job that only has its files."""
    running = Pod.objects.select_related("job__cluster", "job__tenant").filter(job=found.job, phase=PodPhase.RUNNING)
    place = Q(task=found.source.task, index=found.source.index)
    return running.filter(place).first() or running.filter(_ONLY_FILES).first()
