"""Quota use of the people of a tenant, counted from the existing jobs and pods."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from django.db.models import Count, DateTimeField, F, Func, JSONField, Q, QuerySet, Sum
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce, Greatest, JSONObject, Least

from hekla.apps.clusters.models import Cluster
from hekla.apps.compiled import CompiledValues, OneOf, Parameter
from hekla.apps.jobs.models import FrozenPod, Job, Pod
from hekla.apps.tenancy.models import Tenant
from hekla.domain.card_resources import card_counts
from hekla.domain.jobspec import SESSION
from hekla.domain.phases import PLACED_POD_PHASES
from hekla.domain.resources import Resources


def month_of(now: datetime) -> datetime:
    """The start of the month, in UTC."""
    return now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def unfinished(tenant: Tenant) -> dict[int, int]:
    """The number of unfinished jobs of each person (by user id)."""
    return _by_owner(_unfinished(tenant))


def sessions(tenant: Tenant) -> dict[int, int]:
    """The number of unfinished debugging sessions of each person (by user id)."""
    return _by_owner(_unfinished(tenant).filter(kind=SESSION))


def frozen_bytes(tenant: Tenant) -> int:
    """The bytes that the frozen pods of a tenant occupy, as far as they are measured."""
    found = FrozenPod.objects.filter(pod__job__tenant=tenant, cleaned_at=None, released_at=None)
    return int(found.aggregate(total=Sum("size"))["total"] or 0)


def _unfinished(tenant: Tenant) -> QuerySet[Job]:
    return Job.objects.filter(tenant=tenant, finished_at=None, deleted_at=None)


def _by_owner(jobs: QuerySet[Job]) -> dict[int, int]:
    return dict(jobs.order_by().values_list("owner_id").annotate(count=Count("id")))


def card_hours(tenant: Tenant, now: datetime) -> dict[int, dict[str, float]]:
    """The hours of each person (by user id) on real cards this month, by the resource that counts the cards.

    From each pod's bind to its end.
    """
    return {owner: use.hours for owner, use in _by("owner_id", "tenant", [tenant.pk], now).items()}


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
    return _by("owner_id", "owner", user_ids, now)


def of_tenants(tenant_ids: Collection[int], now: datetime) -> dict[int, CardSpending]:
    """The use of each of these tenants, by row id; tenants without any are left out."""
    return _by("tenant_id", "tenant", tenant_ids, now)


def _by(whose: str, among: str, keys: Collection[int], now: datetime) -> dict[int, CardSpending]:
    """The use of pods by a column of their jobs. `among`: another column, with one of the `keys`."""
    spent: dict[int, CardSpending] = defaultdict(CardSpending)
    for key, request, time, placed in _held(whose, among).rows(keys=list(keys), now=now, begin=month_of(now)):
        use, hours = spent[key], time.total_seconds() / 3600
        for resource, count in card_counts(Resources.parse(request or {})).items():
            use.hours[resource] += count * hours
            if placed:
                use.held[resource] += count * placed
    return {key: use for key, use in spent.items() if use.hours or use.held}


class _Request(Func):
    """The amounts that one replica of a pod's task requests, in the spec of its job.

    A month has as many jobs as it has; the different requests of a person are few. So the database adds up.
    """

    template = "jsonb_path_query_first(%(expressions)s)"
    output_field = JSONField()

    def __init__(self) -> None:
        path = RawSQL("'$.tasks[*] ? (@.name == $name).resources'::jsonpath", [])
        super().__init__(F("job__spec"), path, JSONObject(name="task"))


@cache
def _held(whose: str, among: str) -> CompiledValues:
    """By the column of jobs and the request: how long pods held their nodes this month, and how many do so now."""
    return CompiledValues(lambda: _held_among(whose, among))


def _held_among(whose: str, among: str) -> QuerySet[Pod, tuple[int, Any, timedelta, int]]:
    now, begin = (Parameter(name, DateTimeField()) for name in ("now", "begin"))
    pods = Pod.objects.filter(OneOf(f"job__{among}", "keys", Job._meta.pk))
    real = pods.exclude(job__cluster__kind=Cluster.Kind.SIMULATED).exclude(finished_at__lt=begin)
    bound = real.filter(bound_at__isnull=False).order_by().annotate(request=_Request())
    until, since = Least(Coalesce(F("finished_at"), now), now), Greatest(F("bound_at"), begin)
    placed = Count("id", filter=Q(phase__in=PLACED_POD_PHASES))
    groups = bound.values_list(f"job__{whose}", "request")
    return groups.annotate(time=Sum(until - since), placed=placed)
