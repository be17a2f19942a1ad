"""Questions about costs. People see those of their tenants; who sees everything sees all."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet, Sum

from hekla.apps.accounts.models import User
from hekla.apps.measures.levels import DAY, MINUTE, PARTS, floor
from hekla.apps.measures.models import HolderCost, MeasuredCluster, PartCost
from hekla.apps.measures.selectors import COLUMNS, IDS, Chosen, GpuTimeQuery, GroupBy, Period, name_parts, stretches
from hekla.apps.prices import selectors as prices
from hekla.apps.prices.models import PriceList
from hekla.domain.cost_forecast import MOST_MONTHS, CostForecast, DailyCosts, forecast, month_of
from hekla.domain.gpu_time import HELD, WASTED, GpuClass
from hekla.domain.prices import PricedResource

Costs = Mapping[GpuClass, int]
"""In millionths of the currency, by class."""
COST_PERIODS = tuple(one for one in Period if one is not Period.HOUR)
"""Costs are added up by hours, so a period is a day at least."""
_SUMS = {f"of_{one}": Sum(one.value) for one in HELD}


@dataclass(frozen=True, slots=True)
class CostPoint:
    """The costs of the step from `at` on."""

    at: datetime
    costs: Costs

    @property
    def total(self) -> int:
        return sum(self.costs.values())


@dataclass(frozen=True, slots=True)
class CostPart:
    """The costs of a part, and its total in the period before. `key`: by which it can be filtered; empty: it cannot."""

    name: str
    key: str
    costs: Costs
    before: int

    @property
    def total(self) -> int:
        return sum(self.costs.values())

    @property
    def wasted(self) -> int:
        return wasted_of(self.costs)


@dataclass(frozen=True, slots=True)
class ResourceCost:
    """What was held of a resource, in the units of `domain.prices.HOUR_OF`, and what it cost. `model`: of GPUs."""

    resource: PricedResource
    model: str
    held: int
    cost: int


@dataclass(frozen=True, slots=True)
class CostReport:
    """Costs from `begin` until `end`, as far as they are measured (`measured_until`; None: not at all).

    `priced_since`: when the first list began; None: there is no list.
    """

    query: GpuTimeQuery
    begin: datetime
    end: datetime
    measured_until: datetime | None
    priced_since: datetime | None
    currency: str
    is_simulated: bool
    points: list[CostPoint]
    before: Costs
    parts: list[CostPart]
    resources: list[ResourceCost]

    @property
    def totals(self) -> Costs:
        """The costs of the whole period by class."""
        found = Counter[GpuClass]()
        for point in self.points:
            found.update(point.costs)
        return found

    @property
    def total(self) -> int:
        return sum(self.totals.values())


def wasted_of(costs: Costs) -> int:
    """The cost of what was wasted."""
    return sum(costs.get(what, 0) for what in WASTED)


def cost(user: User, query: GpuTimeQuery, *, now: datetime) -> CostReport:
    """The report for this person. Raises NotFound for names that they cannot see."""
    chosen = Chosen.of(query, user)
    begin, end = query.bounds(now)
    before = query.before(now).bounds(now)
    whole = _rows(chosen, query.step, None)
    now_by = _by_part(chosen, query.by, stretches(begin, end, query.step, now=now))
    then_by = _by_part(chosen, query.by, stretches(*before, query.step, now=now))
    names = name_parts(query.by, dict.fromkeys([*now_by, *then_by]))
    parts = [
        CostPart(*names[key], now_by.get(key, Counter()), sum(then_by.get(key, Counter()).values())) for key in names
    ]
    return CostReport(
        query=query,
        begin=begin,
        end=end,
        measured_until=_measured_until(chosen),
        priced_since=PriceList.objects.order_by("begin_at").values_list("begin_at", flat=True).first(),
        currency=prices.currency(),
        is_simulated=chosen.is_simulated,
        points=_points(whole, begin, end, query.step),
        before=_totals(whole, *before),
        parts=sorted(parts, key=lambda part: (-part.total, -part.before, part.name)),
        resources=_resources(whole, begin, end),
    )


def _rows(chosen: Chosen, level: timedelta, by: GroupBy | None) -> QuerySet[Any]:
    """The sums of this level, from the smallest table that can be grouped `by` (None: only by time)."""
    facts: dict[str, Any] = {"level": level // MINUTE, **({"model": chosen.model} if chosen.model else {})}
    names = {name for name, one in (("queue", chosen.queue), ("tenant", chosen.tenants)) if one is not None}
    names |= {by.value} & PARTS.keys() if by is not None else set()
    if len(names) > 1:
        return HolderCost.objects.filter(chosen.of_holders, **facts)
    found = PartCost.objects.filter(cluster_id__in=chosen.clusters, by=names.pop() if names else "all", **facts)
    keys = [chosen.queue] if chosen.queue is not None else chosen.tenants
    return found if keys is None else found.filter(key__in=[str(key) for key in keys])


def _costs(row: Mapping[str, Any]) -> Costs:
    return {one: int(row[f"of_{one}"] or 0) for one in HELD}


def _points(rows: QuerySet[Any], begin: datetime, end: datetime, step: timedelta) -> list[CostPoint]:
    """A point for each step, also for those without any cost."""
    found = rows.filter(at__gte=begin, at__lt=end).order_by("at").values("at").annotate(**_SUMS)
    known = {row["at"]: _costs(row) for row in found}
    times = (begin + step * number for number in range((end - begin) // step))
    return [CostPoint(at, known.get(at, dict.fromkeys(HELD, 0))) for at in times]


def _totals(rows: QuerySet[Any], begin: datetime, end: datetime) -> Costs:
    return _costs(rows.filter(at__gte=begin, at__lt=end).aggregate(**_SUMS))


def _by_part(
    chosen: Chosen, by: GroupBy, times: Sequence[tuple[timedelta, datetime, datetime]]
) -> dict[Any, Counter[GpuClass]]:
    found = defaultdict[Any, Counter[GpuClass]](Counter)
    for level, begin, end in times:
        rows = _rows(chosen, level, by).filter(at__gte=begin, at__lt=end)
        column = "key" if rows.model is PartCost and by.value in PARTS else COLUMNS[by]
        for row in rows.order_by().values(column).annotate(**_SUMS):
            found[int(row[column]) if by in IDS else row[column]].update(_costs(row))
    return found


def _resources(rows: QuerySet[Any], begin: datetime, end: datetime) -> list[ResourceCost]:
    """By resource and model, the most expensive first."""
    rows = rows.filter(at__gte=begin, at__lt=end).order_by().values("resource", "model")
    found = [
        ResourceCost(PricedResource(row["resource"]), row["model"], int(row["held_in_all"]), sum(_costs(row).values()))
        for row in rows.annotate(held_in_all=Sum("held"), **_SUMS)
    ]
    return sorted(found, key=lambda one: (-one.cost, one.resource, one.model))


def _measured_until(chosen: Chosen) -> datetime | None:
    """Up to when all clusters are measured."""
    found = MeasuredCluster.objects.filter(cluster_id__in=chosen.clusters).exclude(until=None)
    return found.order_by("until").values_list("until", flat=True).first()


def forecast_of(user: User, query: GpuTimeQuery, *, now: datetime) -> CostForecast | None:
    """What the present month (UTC) will cost, of all that the query means; None without prices. Raises NotFound."""
    since = PriceList.objects.filter(begin_at__lte=now).order_by("begin_at").values_list("begin_at", flat=True).first()
    if since is None:
        return None
    chosen, today = Chosen.of(query, user), floor(now, DAY)
    first = month_of(today)
    for _number in range(MOST_MONTHS + 1):
        first = month_of(first - DAY)
    first = max(first, floor(since, DAY) + (DAY if floor(since, DAY) < since else timedelta()))
    rows = _rows(chosen, DAY, None).filter(at__gte=min(first, month_of(today)), at__lt=today + DAY)
    daily = {row["at"]: sum(_costs(row).values()) for row in rows.order_by().values("at").annotate(**_SUMS)}
    return forecast(DailyCosts(first, today, daily), now)
