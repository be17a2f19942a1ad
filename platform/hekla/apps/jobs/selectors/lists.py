"""Lists of jobs, their counts, and each person's settings of the list."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import count
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from hekla.apps import paging
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.compiled import CompiledQuery, OneOf, Parameter
from hekla.apps.jobs.models import Job, JobListSettings, Placement, SavedView
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.apps.tenancy.selectors import Rights
from hekla.domain.errors import NotFound
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.queue_settings import JobOrder

MOST_COUNTED = 1000
_NUMBER_AT_END = re.compile(r"-\d+$")
_AT_REST = [JobPhase.PENDING.value, JobPhase.RESTARTING.value]

_POD_COUNTS = """
    SELECT job_id, phase, count(*)
    FROM (
        SELECT DISTINCT ON (job_id, task, index) job_id, phase, stopping
        FROM jobs_pod
        WHERE job_id = ANY(%(jobs)s)
        ORDER BY job_id, task, index, attempt DESC
    ) AS latest
    WHERE NOT (stopping AND phase = %(succeeded)s)
    GROUP BY job_id, phase
"""
"""Written out: jobs have up to thousands of pods, and the database counts them faster than it sends them."""


def of_tenant(tenant_id: int, uids: Collection[str]) -> list[Job]:
    """The jobs with these uids that belong to the tenant."""
    return list(Job.objects.filter(tenant_id=tenant_id, uid__in=uids)) if uids else []


def with_uids(uids: Collection[str]) -> list[Job]:
    """The jobs with these uids, of any tenant."""
    return list(Job.objects.filter(uid__in=uids)) if uids else []


def ahead_of(job: Job) -> int:
    """How many other waiting jobs of its queue have higher priority, or equal priority and an earlier submission.

    If the queue's order is FIFO, the submission alone counts.
    """
    sooner = Q(priority__gt=job.priority) | Q(priority=job.priority, submitted_at__lt=job.submitted_at)
    if job.queue.job_order == JobOrder.FIFO:
        sooner = Q(submitted_at__lt=job.submitted_at)
    waiting = Job.objects.filter(queue_id=job.queue_id, deleted_at=None, phase__in=_AT_REST)
    return waiting.filter(sooner).exclude(pk=job.pk).count()


def expiring(*, until: datetime, limit: int) -> list[Job]:
    """Finished jobs that expire before this time, the first to expire first."""
    return list(Job.objects.filter(deleted_at=None, expires_at__lte=until).order_by("expires_at")[:limit])


def waiting_of(owner_ids: Collection[int], uids: Collection[UUID], *, limit: int) -> list[Job]:
    """Pending jobs of these people or with these uids, in order of submission."""
    if not owner_ids and not uids:
        return []
    found = Job.objects.filter(Q(owner_id__in=owner_ids) | Q(uid__in=uids), deleted_at=None, phase=JobPhase.PENDING)
    return list(found.order_by("submitted_at")[:limit])


def pod_counts(jobs: Sequence[Job]) -> dict[int, dict[str, int]]:
    """For each job (by row id) the number of current pods per phase; succeeded pods that are stopping do not count."""
    counts: dict[int, dict[str, int]] = {job.pk: {} for job in jobs}
    if not counts:
        return counts
    with connection.cursor() as cursor:
        cursor.execute(_POD_COUNTS, {"jobs": list(counts), "succeeded": PodPhase.SUCCEEDED.value})
        for job_id, phase, count in cursor.fetchall():
            counts[job_id][phase] = count
    return counts


def phase_counts(jobs: QuerySet[Job], **others: QuerySet[Job]) -> dict[str, int]:
    """The number of these jobs per phase, and of the jobs in each other queryset, without zeros.

    Counting stops at `MOST_COUNTED` + 1, which means "more than `MOST_COUNTED`".
    """
    phases = [phase.value for phase in JobPhase]
    return paging.counts_up_to(MOST_COUNTED, jobs, "phase", phases, **others)


def free_name(tenant: Tenant, like: str) -> str:
    """A name like this one that no job of the tenant has: `train-1`, `train-2` …"""
    stem = _NUMBER_AT_END.sub("", like)[:45]
    in_use = set(
        Job.objects.filter(tenant=tenant, deleted_at=None, name__startswith=stem).values_list("name", flat=True)
    )
    return next(name for n in count(1) if (name := f"{stem}-{n}") not in in_use)


def placement(job: Job) -> Placement | None:
    """Why the job is in its cluster; None if it did not name a federated queue."""
    return next(iter(_PLACEMENT.rows(job=job.pk)), None)


def arrangement(user: User) -> JobListSettings:
    """The person's settings of the job list; an unsaved row if there are none."""
    return next(iter(_ARRANGEMENT.rows(user=user.pk)), None) or JobListSettings(user=user)


def views_of(user: User, rights: Rights | None = None) -> QuerySet[SavedView]:
    """The person's own views, and those that their tenants share, by name."""
    shared = Q(tenant__in=(rights or tenancy.rights(user)).where(Permission.SEE_TENANT))
    return _views(Q(owner=user, tenant=None) | shared)


def listed_views_of(user: User, rights: Rights) -> list[SavedView]:
    """The same, read at once: each list of jobs does."""
    return _VIEWS.rows(owner=user.pk, tenants=rights.where(Permission.SEE_TENANT))


def _views(condition: Q) -> QuerySet[SavedView]:
    return SavedView.objects.filter(condition).select_related("tenant").order_by("name")


def view(pk: int, user: User) -> SavedView:
    """One of the person's views. Raises NotFound."""
    found = views_of(user).filter(pk=pk).first()
    if found is None:
        raise NotFound(_("Unknown view."))
    return found


_USER, _TENANT = User._meta.pk, Tenant._meta.pk
_PLACEMENT = CompiledQuery(
    lambda: Placement.objects.filter(job=Parameter("job", Job._meta.pk)).select_related("federated_queue")
)
_ARRANGEMENT = CompiledQuery(
    lambda: JobListSettings.objects.filter(user=Parameter("user", _USER)).select_related("opens_with")
)
_VIEWS = CompiledQuery(
    lambda: _views(Q(owner=Parameter("owner", _USER), tenant=None) | Q(OneOf("tenant", "tenants", _TENANT)))
)
