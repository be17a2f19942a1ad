"""Quota use of the people of a tenant, counted from the existing jobs and pods."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, F, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, Greatest, Least

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.tenancy.models import Tenant
from hekla.domain.card_resources import card_counts
from hekla.domain.jobspec import SESSION


def month_of(now: datetime) -> datetime:
    """The start of the month, in UTC."""
    return now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def unfinished(tenant: Tenant) -> dict[int, int]:
    """The number of unfinished jobs of each person (by user id)."""
    return _by_owner(_unfinished(tenant))


def sessions(tenant: Tenant) -> dict[int, int]:
    """The number of unfinished debugging sessions of each person (by user id)."""
    return _by_owner(_unfinished(tenant).filter(kind=SESSION))


def _unfinished(tenant: Tenant) -> QuerySet[Job]:
    return Job.objects.filter(tenant=tenant, finished_at=None, deleted_at=None)


def _by_owner(jobs: QuerySet[Job]) -> dict[int, int]:
    return dict(jobs.order_by().values_list("owner_id").annotate(count=Count("id")))


def card_hours(tenant: Tenant, now: datetime) -> dict[int, dict[str, float]]:
    """The hours of each person (by user id) on real cards this month, by the resource that counts the cards.

    From each pod's bind to its end.
    """
    spent: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    held = _held(tenant, now)
    jobs = Job.objects.in_bulk({row["job_id"] for row in held})
    for row in held:
        job = jobs[row["job_id"]]
        hours = row["time"].total_seconds() / 3600
        for resource, count in card_counts(spec_of(job).task(row["task"]).request).items():
            spent[job.owner_id][resource] += count * hours
    return spent


def _held(tenant: Tenant, now: datetime) -> list[dict[str, Any]]:
    """By job and task: how long its pods held their nodes this month."""
    begin = month_of(now)
    real = Pod.objects.exclude(job__cluster__kind=Cluster.Kind.SIMULATED).exclude(finished_at__lt=begin)
    pods = real.filter(job__tenant=tenant, bound_at__isnull=False).order_by()
    until, since = Least(Coalesce(F("finished_at"), Value(now)), Value(now)), Greatest(F("bound_at"), Value(begin))
    return [dict(row) for row in pods.values("job_id", "task").annotate(time=Sum(until - since))]
