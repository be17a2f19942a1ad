"""Questions about GPU time. People who see everything see capacity; others see what their tenants held."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import reduce
from typing import Any, Self

from django.db.models import BigIntegerField, Exists, Model, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from hekla.apps import due_work
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.models import LoggedEvent, Numbering
from hekla.apps.measures.following import OF_JOBS, OF_NODES, OF_PRICES
from hekla.apps.measures.levels import DAY, HOUR, KEEP_DAYS, MINUTE, floor
from hekla.apps.measures.models import (
    ClusterGpuTime,
    GpuCapacity,
    GpuHolding,
    HolderGpuTime,
    MeasuredCluster,
    MeasuresCursor,
    PartGpuTime,
    StaleHour,
)
from hekla.apps.prices.models import PriceList
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.gpu_time import HELD, GpuClass


class Period(StrEnum):
    """How much time a report covers. A month has 30 days, a quarter 90."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"


class GroupBy(StrEnum):
    """What the parts of a report are."""

    CLUSTER = "cluster"
    QUEUE = "queue"
    TENANT = "tenant"
    PERSON = "person"
    KIND = "kind"
    MODEL = "model"


_SCALES = {
    Period.HOUR: (HOUR, MINUTE),
    Period.DAY: (DAY, HOUR),
    Period.WEEK: (7 * DAY, HOUR),
    Period.MONTH: (30 * DAY, DAY),
    Period.QUARTER: (90 * DAY, DAY),
}
"""The length of each period, and that of its steps."""
COLUMNS = {
    GroupBy.CLUSTER: "cluster_id",
    GroupBy.QUEUE: "queue_id",
    GroupBy.TENANT: "tenant_id",
    GroupBy.PERSON: "owner_id",
    GroupBy.KIND: "kind",
    GroupBy.MODEL: "model",
}
_OF_NODES = frozenset({GroupBy.CLUSTER, GroupBy.MODEL})
IDS = frozenset({GroupBy.CLUSTER, GroupBy.QUEUE, GroupBy.TENANT, GroupBy.PERSON})
_COARSE = (DAY, HOUR, MINUTE)
_Stretch = tuple[timedelta, datetime, datetime]
"""A level of sums, and the begin and end of a time that is made of whole ones."""
_MOST_UNREAD = 2000
"""Events."""
Amounts = Mapping[GpuClass, int]
"""GPU time in microseconds by class."""


@dataclass(frozen=True, slots=True)
class MeasuresQuery:
    """What to report: a period that ends at `until` (None: now), and filters by name; empty: all."""

    period: Period = Period.DAY
    until: datetime | None = None
    cluster: str = ""
    queue: str = ""
    tenant: str = ""
    model: str = ""

    @property
    def step(self) -> timedelta:
        return _SCALES[self.period][1]

    def bounds(self, now: datetime) -> tuple[datetime, datetime]:
        """The first instant and the end. The last step may not be over. Nothing is older than `KEEP_DAYS`."""
        last = max(min(self.until or now, now), now - KEEP_DAYS)
        end = floor(last, self.step)
        end = end if end == last else end + self.step
        return end - _SCALES[self.period][0], end

    def before(self, now: datetime) -> Self:
        """The same of the period before."""
        return replace(self, until=self.bounds(now)[0])


@dataclass(frozen=True, slots=True)
class GpuTimeQuery(MeasuresQuery):
    """A query of GPU time. `by`: the parts."""

    by: GroupBy = GroupBy.TENANT


@dataclass(frozen=True, slots=True)
class GpuTimePoint:
    """The GPU time in the step from `at` on."""

    at: datetime
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class GpuTimePart:
    """The GPU time of one part of a report. `key`: by which it can be filtered, empty if it cannot."""

    name: str
    key: str
    amounts: Amounts

    @property
    def total(self) -> int:
        return sum(self.amounts.values())


@dataclass(frozen=True, slots=True)
class GpuTimeReport:
    """GPU time from `begin` until `end`, as far as it is measured (`measured_until`; None: not at all).

    `is_capacity`: the classes add up to the capacity; else they are those of what pods held. `before`: the totals of
    the period before.
    """

    query: GpuTimeQuery
    begin: datetime
    end: datetime
    measured_until: datetime | None
    is_capacity: bool
    is_simulated: bool
    points: list[GpuTimePoint]
    before: Amounts
    parts: list[GpuTimePart]

    @property
    def classes(self) -> tuple[GpuClass, ...]:
        return tuple(GpuClass) if self.is_capacity else HELD

    @property
    def totals(self) -> Amounts:
        """The GPU time by class of the whole period."""
        return reduce(lambda total, point: total + Counter(point.amounts), self.points, Counter[GpuClass]())


def gpu_time(user: User, query: GpuTimeQuery, *, now: datetime, with_parts: bool = True) -> GpuTimeReport:
    """The report for this person. Raises NotFound for names that they cannot see."""
    chosen = Chosen.of(query, user)
    begin, end = query.bounds(now)
    classes = tuple(GpuClass) if chosen.is_capacity else HELD
    whole = chosen.rows(query.step, by=None, is_capacity=chosen.is_capacity)
    is_of_nodes, times = chosen.is_capacity and query.by in _OF_NODES, stretches(begin, end, query.step, now=now)
    return GpuTimeReport(
        query=query,
        begin=begin,
        end=end,
        measured_until=_measured_until(chosen),
        is_capacity=chosen.is_capacity,
        is_simulated=chosen.is_simulated,
        points=_points(whole, classes, begin, end, query.step),
        before=_totals(whole, classes, *query.before(now).bounds(now)),
        parts=_parts(chosen, query.by, times, is_capacity=is_of_nodes) if with_parts else [],
    )


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows that a query means, among those that the person can see. `tenants`: only these; None: all."""

    clusters: list[int]
    is_simulated: bool
    queue: int | None
    tenants: frozenset[int] | None
    model: str = ""

    @classmethod
    def of(cls, query: MeasuresQuery, user: User) -> "Chosen":
        """Simulated clusters count only if they are chosen. Raises NotFound."""
        if query.cluster:
            found = [clusters.get(query.cluster)]
        else:
            found = [cluster for cluster in clusters.all_clusters() if not cluster.is_simulated]
        sees_all = accounts.may(user, Permission.SEE_EVERYTHING)
        tenants = None if sees_all else tenancy.visible_ids(user)
        if query.tenant:
            tenants = frozenset({tenancy.get(query.tenant, user).pk})
        queue = queues.get(query.queue, user).pk if query.queue else None
        is_simulated = any(cluster.is_simulated for cluster in found)
        return cls([cluster.pk for cluster in found], is_simulated, queue, tenants, query.model)

    @property
    def is_capacity(self) -> bool:
        """Whether all time is meant, also that which nobody held."""
        return self.queue is None and self.tenants is None

    @property
    def of_holders(self) -> Q:
        """The condition on sums of holders, and on holdings."""
        condition = Q(cluster_id__in=self.clusters)
        if self.queue is not None:
            condition &= Q(queue_id=self.queue)
        return condition if self.tenants is None else condition & Q(tenant_id__in=self.tenants)

    def rows(self, level: timedelta, *, by: GroupBy | None, is_capacity: bool) -> QuerySet[Any]:
        """The sums of this level, from the smallest table that can be grouped `by` (None: only by time)."""
        facts: dict[str, Any] = {"level": level // MINUTE, **({"model": self.model} if self.model else {})}
        if is_capacity:
            return ClusterGpuTime.objects.filter(cluster_id__in=self.clusters, **facts)
        names = {name for name, chosen in (("queue", self.queue), ("tenant", self.tenants)) if chosen is not None}
        wanted = names | ({by.value} if by is not None and by not in _OF_NODES else set())
        if level == MINUTE or len(wanted) != 1:
            return HolderGpuTime.objects.filter(self.of_holders, **facts)
        found = PartGpuTime.objects.filter(cluster_id__in=self.clusters, by=wanted.pop(), **facts)
        keys = [self.queue] if self.queue is not None else self.tenants
        return found if keys is None else found.filter(key__in=[str(key) for key in keys])


def _measured_until(chosen: Chosen) -> datetime | None:
    """Up to when all clusters are measured. One with a fault holds the others back, so that nothing is left out."""
    found = MeasuredCluster.objects.filter(cluster_id__in=chosen.clusters, has_gpus=True).exclude(until=None)
    return found.order_by("until").values_list("until", flat=True).first()


def _amounts(row: Mapping[str, Any], classes: tuple[GpuClass, ...]) -> Amounts:
    return {one: int(row[f"of_{one}"] or 0) for one in classes}


def _points(
    rows: QuerySet[Any], classes: tuple[GpuClass, ...], begin: datetime, end: datetime, step: timedelta
) -> list[GpuTimePoint]:
    """A point for each step, also for those without any GPU time."""
    sums = {f"of_{one}": Sum(one.value) for one in classes}
    found = rows.filter(at__gte=begin, at__lt=end).order_by("at").values("at").annotate(**sums)
    known = {row["at"]: _amounts(row, classes) for row in found}
    count, none = (end - begin) // step, dict.fromkeys(classes, 0)
    return [GpuTimePoint(at, known.get(at, none)) for at in (begin + step * number for number in range(count))]


def _totals(rows: QuerySet[Any], classes: tuple[GpuClass, ...], begin: datetime, end: datetime) -> Amounts:
    found = rows.filter(at__gte=begin, at__lt=end).aggregate(**{f"of_{one}": Sum(one.value) for one in classes})
    return _amounts(found, classes)


def stretches(begin: datetime, end: datetime, step: timedelta, *, now: datetime) -> list[_Stretch]:
    """The same time in as few sums as possible: whole days and hours, with finer sums (of the step) only at its ends.

    Sums of a day or hour that is not over count up to now, so they are whole if the time ends later.
    """
    found, at = list[_Stretch](), begin
    last = end if end < now else floor(now, DAY) + DAY
    while at < end:
        level = next(one for one in _COARSE if one == step or (at == floor(at, one) and at + one <= max(last, end)))
        since = found.pop()[1] if found and found[-1][0] == level else at
        at += level
        found.append((level, since, at))
    return found


def _parts(chosen: "Chosen", by: GroupBy, times: Sequence[_Stretch], *, is_capacity: bool) -> list[GpuTimePart]:
    """The parts, those with most GPU time first."""
    classes = tuple(GpuClass) if is_capacity else HELD
    sums, amounts = {f"of_{one}": Sum(one.value) for one in classes}, defaultdict[Any, Counter[GpuClass]](Counter)
    for level, begin, end in times:
        rows = chosen.rows(level, by=by, is_capacity=is_capacity).filter(at__gte=begin, at__lt=end)
        column = "key" if rows.model is PartGpuTime and by not in _OF_NODES else COLUMNS[by]
        for row in rows.order_by().values(column).annotate(**sums):
            key = int(row[column]) if by in IDS else row[column]
            amounts[key].update(_amounts(row, classes))
    names = name_parts(by, amounts)
    parts = [GpuTimePart(*names[key], amount) for key, amount in amounts.items()]
    return sorted(parts, key=lambda part: (-part.total, part.name))


def name_parts(by: GroupBy, keys: Iterable[Any]) -> dict[Any, tuple[str, str]]:
    """The name of each part, and the key by which it can be filtered (empty: it cannot)."""
    found = list(keys)
    names = _names(by, [key for key in found if isinstance(key, int)])
    return {key: names.get(key, _unnamed(by, key)) for key in found}


def _unnamed(by: GroupBy, key: object) -> tuple[str, str]:
    """The name and key of a part that is its own name, or whose row was deleted."""
    if isinstance(key, int):
        return _("deleted (%(number)d)") % {"number": key}, ""
    return str(key), str(key) if by is GroupBy.MODEL else ""


def _names(by: GroupBy, ids: list[int]) -> dict[Any, tuple[str, str]]:
    """The names and keys of these rows."""
    if by in (GroupBy.KIND, GroupBy.MODEL):
        return {}
    tables: dict[GroupBy, tuple[type[Model], str, str]] = {
        GroupBy.CLUSTER: (Cluster, "name", "name"),
        GroupBy.QUEUE: (Queue, "name", "name"),
        GroupBy.TENANT: (Tenant, "name", "slug"),
        GroupBy.PERSON: (User, "username", "username"),
    }
    table, name, key = tables[by]
    found = table._default_manager.filter(pk__in=ids).values_list("pk", name, key)
    return {pk: (label, "" if by is GroupBy.PERSON else value) for pk, label, value in found}


def models() -> list[str]:
    """The models of GPUs that exist now, by name."""
    found = GpuCapacity.objects.filter(end_at=None).order_by("model").values_list("model", flat=True)
    return list(found.distinct())


def roll_up_work() -> list[QuerySet[Any, Any]]:
    """Clusters with GPUs, hours to compute again, or news of nodes and prices (see `due_work`).

    Pods without GPUs count if they cost something: while they run, and until the time of their end is measured. Without
    GPUs and prices nothing else counts; but a long part of the log is read anyway, or looking for nodes takes long.
    """
    until = Subquery(MeasuredCluster.objects.order_by("until").values("until")[:1])
    running = GpuHolding.objects.filter(Q(finished_at=None) | Q(finished_at__gt=until))
    last = Coalesce(Subquery(MeasuresCursor.objects.values("last")[:1]), 0, output_field=BigIntegerField())
    return [
        GpuCapacity.objects.filter(end_at=None),
        StaleHour.objects.filter(since__lte=due_work.present()),
        LoggedEvent.objects.filter(id__gt=last, kind__in=(*OF_NODES, *OF_PRICES)),
        LoggedEvent.objects.filter(Exists(PriceList.objects.all()), id__gt=last, kind__in=OF_JOBS),
        PriceList.objects.filter(Exists(running)),
        Numbering.objects.filter(last__gt=last + _MOST_UNREAD),
    ]


def reader_position() -> int | None:
    """The number of the last event of the log that measures include; None if none was read yet."""
    return MeasuresCursor.objects.values_list("last", flat=True).first()
