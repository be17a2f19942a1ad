"""Queries of the controller about the jobs of a cluster."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import (
    BooleanField,
    Case,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from hekla.apps import due_work
from hekla.apps.clusters.models import Cluster
from hekla.apps.compiled import CompiledQuery, OneOf, Parameter
from hekla.apps.jobs.models import FileUpload, Job, Pod
from hekla.apps.jobs.selectors.freezing import in_use
from hekla.domain.errors import NotFound
from hekla.domain.phases import FINAL_JOB_PHASES, FINAL_POD_PHASES, GangPhase, JobPhase, PodPhase

_UID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")
_COLUMNS = tuple(field.name for field in Job._meta.concrete_fields)
_RELATED_COLUMNS = (
    "queue__name",
    "queue__cluster",
    "queue__parent",
    "queue__state",
    "queue__capability",
    "queue__job_order",
    "queue__reclaimable",
    "owner__username",
    "tenant__slug",
)
_ANY_GARBAGE = """
    SELECT EXISTS (
        SELECT 1 FROM jobs_job e WHERE e.cluster_id = %(cluster)s AND e.expires_at <= %(now)s AND e.deleted_at IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM jobs_frozenpod f JOIN jobs_pod p ON p.id = f.pod_id
            WHERE p.job_id = e.id AND f.released_at IS NULL
        )
    ) OR EXISTS (
        SELECT 1 FROM jobs_job WHERE cluster_id = %(cluster)s AND deleted_at IS NOT NULL AND cleaned_at IS NULL
    ) OR EXISTS (
        SELECT 1 FROM jobs_frozenpod f JOIN jobs_pod p ON p.id = f.pod_id JOIN jobs_job j ON j.id = p.job_id
        WHERE f.cleaned_at IS NULL AND (f.until <= %(now)s OR f.released_at IS NOT NULL OR f.size IS NULL)
        AND j.cluster_id = %(cluster)s
    )
"""
"""Written out: a reconcile asks each time, and building the query costs Django more than running it."""
_FINAL_JOBS = [phase.value for phase in FINAL_JOB_PHASES]
_FINAL_PODS = [phase.value for phase in FINAL_POD_PHASES]


def _of_cluster() -> QuerySet[Job]:
    """Jobs in order of submission, with those columns of their queues, owners and tenants that readers need.

    Of ten thousand jobs, all these columns cost as much as the jobs themselves.
    """
    found = Job.objects.filter(cluster=Parameter("cluster", Job._meta.get_field("cluster")))
    return found.select_related("queue", "owner", "tenant").only(*_COLUMNS, *_RELATED_COLUMNS).order_by("id")


_UNFINISHED = CompiledQuery(lambda: _of_cluster().exclude(phase__in=_FINAL_JOBS))
_ENDING = CompiledQuery(
    lambda: _of_cluster().filter(
        phase__in=_FINAL_JOBS, pk__in=Pod.objects.exclude(phase__in=_FINAL_PODS).values("job_id")
    )
)
_BY_UIDS = CompiledQuery(lambda: _of_cluster().filter(OneOf("uid", "uids", Job._meta.get_field("uid"))))


def unfinished(cluster_id: int) -> list[Job]:
    """Unfinished jobs of a cluster, in order of submission."""
    return _UNFINISHED.rows(cluster=cluster_id)


def any_waiting(cluster_id: int) -> bool:
    """Whether a job of this cluster waits for its first start."""
    return Job.objects.filter(cluster_id=cluster_id, phase=JobPhase.PENDING, started_at=None).exists()


def forecast_work() -> list[QuerySet[Any, Any]]:
    """Jobs that wait for their first start (see `due_work`)."""
    return [Job.objects.filter(deleted_at=None, phase=JobPhase.PENDING, started_at=None)]


def move_work() -> list[QuerySet[Any, Any]]:
    """Jobs that may move to another cluster (see `due_work`)."""
    return [movable()]


def upload_work() -> list[QuerySet[Any, Any]]:
    """Uploads that have expired (see `due_work`)."""
    return [FileUpload.objects.filter(expires_at__lte=due_work.present())]


@dataclass(frozen=True, slots=True)
class WatchedCluster:
    """A cluster, and whether it has work: an unfinished job, a finished one with an unfinished pod, or a deleted one to
    clean. `holder`: who holds its lease now; empty if nobody does. `epoch`: of the lease.
    """

    cluster: Cluster
    holder: str
    epoch: int
    has_work: bool


def watched(cluster_id: int) -> WatchedCluster:
    """What the thread that watches a cluster reads every second or two, in one query. Raises NotFound."""
    for cluster in _WATCHED.rows(pk=cluster_id):
        facts: Any = cluster  # with the columns that the query adds
        return WatchedCluster(cluster, facts.lease_holder or "", facts.lease_epoch or 0, facts.has_work)
    raise NotFound(_("Unknown cluster."))


def _watched() -> QuerySet[Cluster]:
    of_cluster = Job.objects.filter(cluster=OuterRef("pk"))
    alive = of_cluster.exclude(phase__in=_FINAL_JOBS)
    held = Pod.objects.filter(job__cluster=OuterRef("pk")).exclude(phase__in=_FINAL_PODS)
    to_clean = of_cluster.filter(deleted_at__isnull=False, cleaned_at=None)
    return Cluster.objects.filter(pk=Parameter("pk", Cluster._meta.pk)).annotate(
        lease_holder=Case(When(lease__expires_at__gt=Now(), then=F("lease__holder"))),
        lease_epoch=F("lease__epoch"),
        has_work=ExpressionWrapper(
            Q(Exists(alive)) | Q(Exists(held)) | Q(Exists(to_clean)), output_field=BooleanField()
        ),
    )


_WATCHED = CompiledQuery(_watched)


def ending(cluster_id: int) -> list[Job]:
    """Finished jobs of a cluster with unfinished pods."""
    return _ENDING.rows(cluster=cluster_id)


def movable() -> QuerySet[Job]:
    """Pending jobs of federated queues without a pod on a node, in scheduling order."""
    waits = Job.objects.filter(phase=JobPhase.PENDING, gang_phase__in=(GangPhase.PENDING, GangPhase.INQUEUE))
    placed = Pod.objects.filter(job=OuterRef("pk")).exclude(phase=PodPhase.PENDING, node="", stopping=False)
    found = waits.filter(~Exists(placed), placement__federated_queue__isnull=False, deleted_at=None)
    return found.select_related("queue", "cluster", "tenant", "owner", "placement__federated_queue").order_by(
        "-priority", "submitted_at", "id"
    )


def by_uids(cluster_id: int, uids: Collection[str]) -> list[Job]:
    """These jobs of a cluster, in order of submission."""
    return _BY_UIDS.rows(cluster=cluster_id, uids=_uids(uids))


def gone_among(cluster_id: int, *, present: Collection[str], logged: Collection[str]) -> list[Job]:
    """Jobs whose remains must be deleted: cleaned ones of `present`, and ones of `logged` with purged logs."""
    is_gone = Q(uid__in=_uids(present), cleaned_at__isnull=False) | Q(
        uid__in=_uids(logged), logs_purged_at__isnull=False
    )
    return list(Job.objects.filter(is_gone, cluster_id=cluster_id).select_related("tenant").order_by("id"))


def _uids(texts: Iterable[str]) -> list[UUID]:
    """The texts that are uids: in a cluster anybody can put any text onto an object."""
    return [UUID(text) for text in texts if _UID.fullmatch(text)]


def any_garbage(cluster_id: int, *, now: datetime) -> bool:
    """Whether a job's time to live is over, a deleted job is not cleaned up yet, or a frozen pod needs something."""
    with connection.cursor() as cursor:
        cursor.execute(_ANY_GARBAGE, {"cluster": cluster_id, "now": now})
        return bool(cursor.fetchone()[0])


def to_clean(cluster_id: int, *, limit: int) -> list[Job]:
    """Deleted jobs that are not cleaned up yet, without those in whose files another job continues."""
    used = in_use().filter(pod__job=OuterRef("pk"))
    return list(_to_clean(cluster_id).filter(~Exists(used)).select_related("tenant")[:limit])


def _to_clean(cluster_id: int) -> QuerySet[Job]:
    return Job.objects.filter(cluster_id=cluster_id, deleted_at__isnull=False, cleaned_at=None)


def with_overdue_logs(cluster_id: int, *, now: datetime, limit: int) -> list[Job]:
    """Jobs of one tenant whose log retention is over, in order of deletion."""
    cleaned = _deleted_before(cluster_id, now, "tenant__log_days").filter(cleaned_at__isnull=False)
    return _of_one_tenant(cleaned.filter(logs_purged_at=None), limit)


def with_overdue_history(cluster_id: int, *, now: datetime, limit: int) -> list[Job]:
    """Jobs of one tenant whose history retention is over, in order of deletion."""
    overdue = _deleted_before(cluster_id, now, "tenant__history_days")
    return _of_one_tenant(overdue.filter(logs_purged_at__isnull=False), limit)


def _deleted_before(cluster_id: int, now: datetime, days: str) -> QuerySet[Job]:
    retention = ExpressionWrapper(F(days) * Value(timedelta(days=1)), output_field=DurationField())
    return Job.objects.filter(cluster_id=cluster_id, deleted_at__lte=Value(now) - retention)


def _of_one_tenant(jobs: QuerySet[Job], limit: int) -> list[Job]:
    found = list(jobs.select_related("tenant").order_by("deleted_at", "pk")[:limit])
    return [job for job in found if job.tenant_id == found[0].tenant_id]


def run_times(
    cluster_id: int, *, limit: int
) -> list[tuple[int, int, str, int, list[dict[str, Any]], datetime, datetime]]:
    """(row id, owner id, kind, queue id, tasks, start, end) of completed jobs of a cluster, newest first."""
    found = Job.objects.filter(cluster_id=cluster_id, phase=JobPhase.COMPLETED).order_by("-id")
    rows = found.values_list("id", "owner_id", "kind", "queue_id", "spec__tasks", "started_at", "finished_at")[:limit]
    return [(*facts, began, ended) for *facts, began, ended in rows if began and ended]


def of_period(cluster: Cluster, start: datetime, end: datetime) -> QuerySet[Job]:
    """The jobs of a cluster that existed in a period and had not ended before it, in order; also deleted ones."""
    found = Job.objects.filter(cluster=cluster, submitted_at__lt=end)
    found = found.filter(Q(finished_at=None) | Q(finished_at__gt=start))
    return found.select_related("queue__parent", "tenant", "owner").order_by("pk")
