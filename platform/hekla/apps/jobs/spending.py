"""Quota use of the people of a tenant, counted from the existing jobs and pods."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, Greatest, Least

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.tenancy.models import Tenant
from hekla.domain.card_resources import card_counts
from hekla.domain.jobspec import SESSION
from hekla.domain.phases import PLACED_POD_PHASES


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
    return {owner: use.hours for owner, use in _by(Pod.objects.filter(job__tenant=tenant), "owner_id", now).items()}


@dataclass(frozen=True, slots=True)
class CardSpending:
    """Hours on real cards this month, and real cards held now, both by the resource that counts the cards."""

    hours: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    held: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def all_hours(self) -> float:
        return sum(self.hours.values())

    @property
    def all_held(self) -> float:
        return sum(self.held.values())


def of_people(user_ids: Collection[int], now: datetime) -> dict[int, CardSpending]:
    """The use of each of these people, by user id; people without any are left out."""
    return _by(Pod.objects.filter(job__owner__in=user_ids), "owner_id", now)


def of_tenants(tenant_ids: Collection[int], now: datetime) -> dict[int, CardSpending]:
    """The use of each of these tenants, by row id; tenants without any are left out."""
    return _by(Pod.objects.filter(job__tenant__in=tenant_ids), "tenant_id", now)


def _by(pods: QuerySet[Pod], whose: str, now: datetime) -> dict[int, CardSpending]:
    """The use of these pods by a column of their jobs."""
    spent: dict[int, CardSpending] = defaultdict(CardSpending)
    rows = _held(pods, now)
    jobs = Job.objects.only("uid", "name", "revision", "spec", whose).in_bulk({row["job_id"] for row in rows})
    for row in rows:
        job = jobs[row["job_id"]]
        use, hours = spent[getattr(job, whose)], row["time"].total_seconds() / 3600
        for resource, count in card_counts(spec_of(job).task(row["task"]).request).items():
            use.hours[resource] += count * hours
            if row["placed"]:
                use.held[resource] += count * row["placed"]
    return {key: use for key, use in spent.items() if use.hours or use.held}


def _held(pods: QuerySet[Pod], now: datetime) -> list[dict[str, Any]]:
    """By job and task: how long its pods held their nodes this month, and how many do so now."""
    begin = month_of(now)
    real = pods.exclude(job__cluster__kind=Cluster.Kind.SIMULATED).exclude(finished_at__lt=begin)
    bound = real.filter(bound_at__isnull=False).order_by()
    until, since = Least(Coalesce(F("finished_at"), Value(now)), Value(now)), Greatest(F("bound_at"), Value(begin))
    placed = Count("id", filter=Q(phase__in=PLACED_POD_PHASES))
    return [dict(row) for row in bound.values("job_id", "task").annotate(time=Sum(until - since), placed=placed)]
