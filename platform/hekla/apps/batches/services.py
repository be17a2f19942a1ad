"""Changes to batches: submit, stop, retry."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.batches import selectors
from hekla.apps.batches.models import Batch, BatchJob
from hekla.apps.event_log.services import record, unit_of_work
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Forbidden, HeklaError, Invalid, Problem, Refused
from hekla.domain.jobspec import MAX_JOB_NAME, JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.domain.sweeps import MAX_ATTEMPTS, MAX_NAME, SweepSpec
from hekla.domain.validation import join


class BatchNameConflict(Refused):
    """The tenant has a batch with this name."""

    code = "name_taken"


@dataclass(frozen=True, slots=True)
class SweepJob:
    """A job to submit, and its parameters in the sweep."""

    spec: JobSpec
    parameters: dict[str, str]


def check_sweep(*, spec: SweepSpec, tenant: Tenant, user: User, now: datetime) -> list[SweepJob]:
    """The jobs of a sweep, not submitted. Raises what `submit_sweep` raises, except BatchNameConflict."""
    found = _points(spec)
    jobs.try_out_many(specs=[one.spec for one in found], tenant=tenant, user=user, now=now)
    return found


def submit_sweep(*, spec: SweepSpec, tenant: Tenant, user: User, now: datetime) -> Batch:
    """Submit all jobs of a sweep. Raises Invalid (with paths), BatchNameConflict, and what submitting a job raises."""
    batch = Batch(name=spec.name, kind=Batch.Kind.SWEEP, spec=spec.document())
    return _submit(batch, _points(spec), tenant, user, now)


def check_file(*, name: str, specs: Sequence[JobSpec], tenant: Tenant, user: User, now: datetime) -> list[SweepJob]:
    """The jobs of a file, not submitted. Raises what `submit_file` raises, except BatchNameConflict."""
    _require_name(name)
    jobs.try_out_many(specs=specs, tenant=tenant, user=user, now=now)
    return [SweepJob(spec, {}) for spec in specs]


def submit_file(*, name: str, specs: Sequence[JobSpec], tenant: Tenant, user: User, now: datetime) -> Batch:
    """Submit all jobs of a file, each under its own name. Raises what `submit_sweep` raises."""
    _require_name(name)
    batch = Batch(name=name, kind=Batch.Kind.FILE)
    return _submit(batch, [SweepJob(spec, {}) for spec in specs], tenant, user, now)


def stop(batch: Batch, *, user: User, now: datetime) -> int:
    """Abort every job that has not ended; each can be resumed. Returns the number of aborted jobs. Raises Forbidden.

    Each job has its own unit of work: a job that ends in the meantime does not keep others from being stopped.
    """
    _require(selectors.may_act(user, batch))
    unfinished = [member.job for member in selectors.unfinished(batch)]
    stopped = sum(_abort(job, user, now) for job in unfinished)
    if stopped:
        with unit_of_work():
            _tell(batch, events.BatchStopped(name=batch.name, jobs=stopped), user, now)
    return stopped


def retry_failed(batch: Batch, *, user: User, now: datetime) -> int:
    """Submit again the jobs whose last attempt failed, as new jobs of this person. Returns their number.

    Raises Forbidden, Refused (too many retries), and what submitting a job raises.
    """
    _require(selectors.may_retry(user, batch))
    with unit_of_work():
        Batch.objects.select_for_update().get(pk=batch.pk)
        failed = selectors.failed(batch)
        again = [_again(member) for member in failed]
        if again:
            made = jobs.submit_many(specs=again, tenant=batch.tenant, user=user, now=now)
            BatchJob.objects.bulk_create(
                BatchJob(batch=batch, number=old.number, attempt=old.attempt + 1, parameters=old.parameters, job=job)
                for old, job in zip(failed, made, strict=True)
            )
            Batch.objects.filter(pk=batch.pk).update(ended_at=None)
            _tell(batch, events.BatchRetried(name=batch.name, jobs=len(again)), user, now)
    return len(again)


def _points(spec: SweepSpec) -> list[SweepJob]:
    return [SweepJob(point.spec, point.parameters) for point in spec.points()]


def _submit(batch: Batch, ones: Sequence[SweepJob], tenant: Tenant, user: User, now: datetime) -> Batch:
    if Batch.objects.filter(tenant=tenant, name=batch.name).exists():
        raise _name_conflict(batch.name, tenant)
    try:
        with unit_of_work():
            batch.tenant, batch.owner, batch.submitted_at = tenant, user, now
            made = jobs.submit_many(specs=[one.spec for one in ones], tenant=tenant, user=user, now=now)
            batch.save(force_insert=True)
            BatchJob.objects.bulk_create(
                BatchJob(batch=batch, number=number, parameters=one.parameters, job=job)
                for number, (one, job) in enumerate(zip(ones, made, strict=True), start=1)
            )
            _tell(batch, events.BatchSubmitted(name=batch.name, batch_kind=batch.kind, jobs=len(made)), user, now)
    except IntegrityError as error:
        raise _name_conflict(batch.name, tenant) from error
    return batch


def _abort(job: Job, user: User, now: datetime) -> bool:
    try:
        jobs.command(job, LifecycleAction.ABORT_JOB, user=user, now=now)
    except HeklaError:  # the job has ended in the meantime, or is ending
        return False
    return True


def _again(member: BatchJob) -> JobSpec:
    """The same job, named for the next attempt. Raises Refused above MAX_ATTEMPTS, Invalid with the job's path."""
    attempt = member.attempt + 1
    if attempt > MAX_ATTEMPTS:
        raise Refused(_("%s reached the maximum number of retries.") % member.job)
    ending = f"-r{attempt}"
    stem = member.job.name.removesuffix(f"-r{member.attempt}") if member.attempt > 1 else member.job.name
    name = stem[: MAX_JOB_NAME - len(ending)].rstrip("-") + ending
    try:
        return JobSpec.parse({**member.job.spec, "name": name})
    except Invalid as error:
        problems = [Problem(join("jobs", member.number, each.path), each.message) for each in error.problems]
        raise Invalid(problems) from error


def _require_name(name: str) -> None:
    """Raises Invalid unless the name is valid for a batch of a file: the rules of sweeps apply."""
    try:
        JobSpec.parse({"name": name[: MAX_NAME + 1], "tasks": [{"name": "x", "command": ["x"]}]})
    except Invalid as error:
        raise Invalid([problem for problem in error.problems if problem.path == "name"]) from error
    if len(name) > MAX_NAME:
        raise Invalid([Problem("name", _("The name of a batch has at most %d characters.") % MAX_NAME)])


def _name_conflict(name: str, tenant: Tenant) -> BatchNameConflict:
    sentence = _("%(tenant)s has a batch “%(name)s” already. Choose another name.")
    return BatchNameConflict(sentence % {"tenant": tenant, "name": name}, "name")


def _require(may: bool) -> None:
    if not may:
        raise Forbidden(_("Only the owner of the batch and tenant admins can do this."))


def _tell(batch: Batch, event: events.Event, user: User, now: datetime) -> None:
    record(event, subject=f"batch:{batch.uid}", tenant=batch.tenant_id, actor=actor_of(user), at=now)
