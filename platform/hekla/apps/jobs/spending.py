"""What the people of a tenant have and have used: counted from the jobs and pods that there are."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, F, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, Greatest, Least

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.tenancy.models import Tenant
from hekla.domain.jobspec import SESSION
from hekla.domain.resources import Resources


def month_of(now: datetime) -> datetime:
    """When the month began, by UTC."""
    return now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def unfinished(tenant: Tenant) -> dict[int, int]:
    """How many jobs of each person are not over."""
    return _by_owner(_unfinished(tenant))


def sessions(tenant: Tenant) -> dict[int, int]:
    """How many of them are there to look into."""
    return _by_owner(_unfinished(tenant).filter(kind=SESSION))


def _unfinished(tenant: Tenant) -> QuerySet[Job]:
    return Job.objects.filter(tenant=tenant, finished_at=None, deleted_at=None)


def _by_owner(jobs: QuerySet[Job]) -> dict[int, int]:
    return dict(jobs.order_by().values_list("owner_id").annotate(count=Count("id")))


def gpu_hours(tenant: Tenant, now: datetime) -> dict[int, float]:
    """How many hours each person's pods have held a real GPU this month, from bind to end."""
    spent: dict[int, float] = defaultdict(float)
    held = _held(tenant, now)
    jobs = Job.objects.in_bulk({row["job_id"] for row in held})
    for row in held:
        job = jobs[row["job_id"]]
        spent[job.owner_id] += gpus(spec_of(job).task(row["task"]).request) * row["time"].total_seconds() / 3600
    return spent


def gpus(request: Resources) -> float:
    """How many GPUs, of whatever make."""
    return sum(amount for name, amount in request.items() if name.endswith("/gpu")) / 1000


def _held(tenant: Tenant, now: datetime) -> list[dict[str, Any]]:
    """By job and task: for how long its pods held their places this month."""
    begin = month_of(now)
    real = Pod.objects.exclude(job__cluster__kind=Cluster.Kind.SIMULATED).exclude(finished_at__lt=begin)
    pods = real.filter(job__tenant=tenant, bound_at__isnull=False).order_by()
    until, since = Least(Coalesce(F("finished_at"), Value(now)), Value(now)), Greatest(F("bound_at"), Value(begin))
    return [dict(row) for row in pods.values("job_id", "task").annotate(time=Sum(until - since))]
