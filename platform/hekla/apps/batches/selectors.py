"""Queries for batches. Batches outside a person's tenants count as not existing."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, Value
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.batches.models import Batch, BatchJob
from hekla.apps.compiled import CompiledQuery, Parameter
from hekla.apps.job_metrics import selectors as job_metrics
from hekla.apps.job_metrics.ranking import Run
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import NotFound
from hekla.domain.phases import FINAL_JOB_PHASES, JobPhase

FAILED = (JobPhase.FAILED.value, JobPhase.TERMINATED.value)
_ENDING = [JobPhase.ABORTING.value, JobPhase.TERMINATING.value, JobPhase.COMPLETING.value]
_FINAL = [phase.value for phase in FINAL_JOB_PHASES]
_OVER = [*_FINAL, *_ENDING]
_MOMENTS = ("submitted_at", "started_at", "finished_at", "deleted_at")
_LISTED = ("uid", "name", "owner", "phase", "reason", "waiting", "message", "message_facts", *_MOMENTS)
METRICS_WITHIN = timedelta(minutes=2)
"""How long the end of a batch waits for the metrics of its last jobs, if their cluster does not answer."""


def visible_to(user: User) -> QuerySet[Batch]:
    """The batches that this person may see, newest first."""
    found = Batch.objects.select_related("tenant", "owner")
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        found = found.filter(tenant__in=tenancy.where(user, Permission.SEE_TENANT))
    return found.order_by("-submitted_at", "-id")


def searchable() -> QuerySet[Batch]:
    """All batches, for a search that adds which tenants its reader sees."""
    return Batch.objects.all()


def get(uid: UUID, user: User) -> Batch:
    """One batch. Raises NotFound outside the person's tenants."""
    batch = visible_to(user).filter(uid=uid).first()
    if batch is None:
        raise NotFound(_("Unknown batch."))
    return batch


def may_act(user: User, batch: Batch) -> bool:
    """Whether the person may stop the jobs of the batch."""
    if batch.owner_id == user.pk and tenancy.may(user, batch.tenant_id, Permission.ACT_ON_OWN_JOBS):
        return True
    wide = tenancy.may(user, batch.tenant_id, Permission.ACT_ON_TENANT_JOBS)
    return wide or accounts.may(user, Permission.ACT_ON_ANY_JOB)


def may_retry(user: User, batch: Batch) -> bool:
    """Whether the person may retry jobs of the batch; they own the new jobs."""
    return may_act(user, batch) and tenancy.may(user, batch.tenant_id, Permission.SUBMIT_JOBS)


def _last() -> QuerySet[BatchJob]:
    """The last attempt of each number."""
    newest = BatchJob.objects.filter(batch=OuterRef("batch"), number=OuterRef("number")).order_by("-attempt")
    return BatchJob.objects.filter(pk=Subquery(newest.values("pk")[:1]))


def _last_attempts() -> QuerySet[BatchJob]:
    """The last attempt of each number, with what tables show of its job."""
    found = BatchJob.objects.filter(batch=Parameter("batch", Batch._meta.pk)).select_related("job")
    columns = ("batch", "number", "attempt", "parameters", *(f"job__{name}" for name in _LISTED))
    return found.only(*columns).order_by("number", "-attempt").distinct("number")


_CURRENT = CompiledQuery(_last_attempts)


def current(batch: Batch) -> list[BatchJob]:
    """The last attempt of each number, in order; includes deleted jobs."""
    return _CURRENT.rows(batch=batch.pk)


def runs(batch: Batch) -> list[Run]:
    """The last attempt of each number, in order, with its metrics."""
    members = current(batch)
    metrics = job_metrics.figures_of([one.job_id for one in members])
    return [Run(one.job, metrics.get(one.job_id, {}), one.parameters, one.number, one.attempt) for one in members]


def parameters_of(jobs: Collection[int]) -> dict[int, dict[str, str]]:
    """The parameters of those of these jobs (primary keys) that are in a batch."""
    return dict(BatchJob.objects.filter(job__in=jobs).values_list("job_id", "parameters"))


def batches_among(jobs: Collection[int]) -> set[UUID]:
    """The batches (uids) of these jobs (primary keys)."""
    return set(Batch.objects.filter(members__job__in=jobs).values_list("uid", flat=True))


def to_end(*, now: datetime, limit: int) -> list[Batch]:
    """Batches whose jobs have all ended, with their metrics read."""
    members = BatchJob.objects.filter(batch=OuterRef("pk"))
    fresh = job_metrics.unread() & Q(job__finished_at__gt=now - METRICS_WITHIN)
    open_ = members.exclude(job__phase__in=_FINAL)
    found = Batch.objects.filter(~Exists(open_), ~Exists(members.filter(fresh)), ended_at=None)
    return list(found.select_related("owner", "tenant").order_by("pk")[:limit])


def end_work() -> list[QuerySet[Any, Any]]:
    """Batches that have not ended, and ended ones with unfinished jobs (see `due_work`)."""
    unfinished_jobs = BatchJob.objects.exclude(job__phase__in=_FINAL)
    return [Batch.objects.filter(ended_at=None), unfinished_jobs.filter(batch__ended_at__isnull=False)]


def batches_of(jobs: Collection[UUID]) -> dict[UUID, tuple[UUID, str]]:
    """The batch (uid and name) of each of these jobs (uids) that is in one."""
    found = BatchJob.objects.filter(job__uid__in=jobs)
    return {job: (uid, name) for job, uid, name in found.values_list("job__uid", "batch__uid", "batch__name")}


def memberships(cluster_id: int, ended: Collection[int]) -> dict[int, int]:
    """The batch of each unfinished job of a cluster and of these ended ones, as far as they have one (row ids)."""
    living = Q(job__cluster=cluster_id, job__finished_at=None, job__deleted_at=None)
    return dict(BatchJob.objects.filter(living | Q(job__in=ended)).values_list("job_id", "batch_id"))


def unfinished(batch: Batch) -> list[BatchJob]:
    """The jobs of the batch, all attempts, that have not ended and are not ending."""
    found = BatchJob.objects.filter(batch=batch).exclude(job__phase__in=_OVER)
    return list(found.select_related("job").order_by("number"))


def failed(batch: Batch) -> list[BatchJob]:
    """The last attempts that failed or were terminated, by number."""
    return list(_last().filter(batch=batch, job__phase__in=FAILED).select_related("job").order_by("number"))


def phase_counts(batches: Sequence[Batch]) -> dict[int, dict[str, int]]:
    """By batch (row id), the number of last attempts in each phase."""
    counts: dict[int, dict[str, int]] = {batch.pk: {} for batch in batches}
    rows = _last().filter(batch__in=batches).values_list("batch_id", "job__phase").annotate(count=Count("pk"))
    for batch_id, phase, count in rows.order_by():
        counts[batch_id][phase] = count
    return counts


def origin_of(job: Job | Parameter) -> QuerySet[Batch, tuple[str, UUID, str]]:
    """`batch`, uid and name of the batch of the job; people who may see the job may see its batch."""
    found = Batch.objects.filter(members__job=job).annotate(origin=Value("batch"))
    return found.order_by().values_list("origin", "uid", "name")
