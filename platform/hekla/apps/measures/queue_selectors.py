"""Questions about what queues deserved and held over time. People see the queues that they may submit to."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from operator import add
from typing import Any, NamedTuple

from django.db.models import Max, Min, QuerySet, Sum

from hekla.apps import due_work
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.measures import queue_sums
from hekla.apps.measures.levels import DAY, HOUR, MINUTE, floor
from hekla.apps.measures.models import MeasuredQueues, QueueShareSpan, QueueShareTime, StarvedQueueDay, StarvedQueueTime
from hekla.apps.measures.queue_levels import HOLDS
from hekla.apps.measures.selectors import GpuTimeQuery, Period
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue


@dataclass(frozen=True, slots=True)
class QueueUseQuery:
    """What to report: a period that ends at `until` (None: now), and filters by name; empty: all."""

    period: Period = Period.DAY
    until: datetime | None = None
    cluster: str = ""
    queue: str = ""
    resource: str = ""

    @property
    def step(self) -> timedelta:
        return GpuTimeQuery(self.period).step

    def bounds(self, now: datetime) -> tuple[datetime, datetime]:
        """The first instant and the end; see `GpuTimeQuery.bounds`."""
        return GpuTimeQuery(self.period, self.until).bounds(now)

    def before(self, now: datetime) -> "QueueUseQuery":
        """The same of the period before."""
        return replace(self, until=self.bounds(now)[0])


class QueueTime(NamedTuple):
    """Amounts over time, in microseconds of a GPU; see `QueueShareTime`."""

    deserved: int = 0
    allocated: int = 0
    waiting: int = 0
    borrowed: int = 0
    lent: int = 0

    def plus(self, other: "QueueTime") -> "QueueTime":
        """Both together."""
        return QueueTime(*map(add, self, other))


@dataclass(frozen=True, slots=True)
class QueueUse:
    """One queue in the period. `points`: by step. `is_inner`: its amounts contain those of its child queues."""

    name: str
    cluster: str
    is_inner: bool
    points: tuple[QueueTime, ...]
    before: QueueTime

    @property
    def total(self) -> QueueTime:
        return reduce(QueueTime.plus, self.points, QueueTime())


@dataclass(frozen=True, slots=True)
class StarvedQueue:
    """How long a queue waited below what it deserves while another one was above, and when it first and last did.

    `other`: empty for queues that the person may not see.
    """

    queue: str
    other: str
    resource: str
    milliseconds: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class QueueUseReport:
    """What queues deserved and held from `begin` until `end`, as far as it is measured (None: not at all)."""

    query: QueueUseQuery
    begin: datetime
    end: datetime
    measured_until: datetime | None
    is_simulated: bool
    times: tuple[datetime, ...]
    queues: list[QueueUse]
    starved: list[StarvedQueue]

    @property
    def leaves(self) -> list[QueueUse]:
        """The queues whose amounts may be added up."""
        return [one for one in self.queues if not one.is_inner]


_MOMENT = timedelta(microseconds=1)
_Rows = Iterable[tuple[Any, ...]]
_ByQueue = dict[int, dict[datetime, QueueTime]]


def queue_use(user: User, query: QueueUseQuery, *, now: datetime) -> QueueUseReport:
    """The report for this person. Raises NotFound for names that they cannot see."""
    scope = _Scope.of(user, query)
    begin, end = query.bounds(now)
    found, inner = _by_queue(scope, begin, end, query.step, now=now)
    before, _inner = _by_queue(scope, *query.before(now).bounds(now), query.step, now=now)
    times = tuple(begin + query.step * number for number in range((end - begin) // query.step))
    rows = [
        QueueUse(
            name=scope.queues[pk].name,
            cluster=scope.queues[pk].cluster.name,
            is_inner=pk in inner,
            points=tuple(found.get(pk, {}).get(at, QueueTime()) for at in times),
            before=reduce(QueueTime.plus, before.get(pk, {}).values(), QueueTime()),
        )
        for pk in found.keys() | before.keys()
    ]
    return QueueUseReport(
        query=query,
        begin=begin,
        end=end,
        measured_until=scope.measured_until(now),
        is_simulated=scope.is_simulated,
        times=times,
        queues=sorted(rows, key=lambda one: (-one.total.allocated, -one.total.deserved, one.name)),
        starved=_starved(scope, begin, end, now=now),
    )


def starved_queues(user: User, query: QueueUseQuery, *, now: datetime) -> tuple[set[str], set[str]]:
    """The queues that were below what they deserve with pending jobs in the period, while others were above; and those
    of the period before. Raises NotFound.
    """
    scope, times = _Scope.of(user, query), (query.bounds(now), query.before(now).bounds(now))
    found, before = ({pair.queue for pair in _starved(scope, begin, end, now=now)} for begin, end in times)
    return found, before


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a query means, of what the person can see. `queues`: by primary key; `resource`: empty for all.

    `rolled`: up to when the hours of all its clusters are added up.
    """

    clusters: list[int]
    is_simulated: bool
    queues: dict[int, Queue]
    chosen: str
    resource: str
    measured: list[MeasuredQueues]

    @classmethod
    def of(cls, user: User, query: QueueUseQuery) -> "_Scope":
        """Simulated clusters count only if they, or a queue in them, are chosen. Raises NotFound."""
        visible = {queue.pk: queue for queue in queues.listed_visible_to(user)}
        if query.cluster:
            found = [clusters.get(query.cluster)]
        elif query.queue:
            found = [queues.get(query.queue, user).cluster]
        else:
            found = [cluster for cluster in clusters.all_clusters() if not cluster.is_simulated]
        if query.queue:
            queues.get(query.queue, user)
        ids = [cluster.pk for cluster in found]
        measured = list(MeasuredQueues.objects.filter(pk__in=ids))
        is_simulated = any(cluster.is_simulated for cluster in found)
        return cls(ids, is_simulated, visible, query.queue, query.resource, measured)

    @property
    def rolled(self) -> datetime | None:
        return min((one.until for one in self.measured), default=None)

    def measured_until(self, now: datetime) -> datetime | None:
        """Up to when any of its clusters is measured: one that is paused hides nothing of the others."""
        return max((min(one.looked_at + HOLDS, now) for one in self.measured), default=None)

    def counts(self, queue: int, resource: str) -> bool:
        """Whether these amounts belong to the report."""
        row = self.queues.get(queue)
        is_chosen = row is not None and self.chosen in ("", row.name)
        return is_chosen and self.resource in ("", resource)


def _by_queue(
    scope: _Scope, begin: datetime, end: datetime, step: timedelta, *, now: datetime
) -> tuple[_ByQueue, set[int]]:
    """The amounts by queue and step, and which queues are inner ones."""
    found: _ByQueue = defaultdict(dict)
    inner: set[int] = set()
    for at, _cluster, queue, resource, is_inner, *amounts in _rows(scope, begin, end, step, now=now):
        if scope.counts(queue, resource):
            since = max(floor(at, step), begin)
            found[queue][since] = found[queue].get(since, QueueTime()).plus(QueueTime(*amounts))
            if is_inner:
                inner.add(queue)
    return found, inner


def _rows(
    scope: _Scope, begin: datetime, end: datetime, step: timedelta, *, now: datetime
) -> Iterator[tuple[Any, ...]]:
    """The amounts from sums of days and hours, as far as there are some, and from spans after that."""
    rolled = scope.rolled
    if rolled is None:
        return
    if step == MINUTE:
        yield from queue_sums.by_step(scope.clusters, begin, end, step, now=now)
        return
    whole = min(max(floor(rolled, DAY), begin), end) if step == DAY else begin
    yield from _sums(scope, 1440, begin, whole)
    yield from _sums(scope, 60, whole, min(rolled, end))
    if rolled < end:
        yield from queue_sums.by_step(scope.clusters, max(rolled, begin), end, min(step, HOUR), now=now)


def _sums(scope: _Scope, level: int, begin: datetime, end: datetime) -> _Rows:
    if begin >= end:
        return ()
    rows = QueueShareTime.objects.filter(level=level, cluster_id__in=scope.clusters, at__gte=begin, at__lt=end)
    rows = rows.filter(queue_id__in=[pk for pk in scope.queues if scope.counts(pk, scope.resource)])
    return rows.values_list("at", "cluster_id", "queue_id", "resource", "is_inner", *queue_sums.AMOUNTS).iterator()


def _starved(scope: _Scope, begin: datetime, end: datetime, *, now: datetime) -> list[StarvedQueue]:
    """The pairs of queues, those with the longest times first. Others that the person may not see are one."""
    rolled = scope.rolled
    if rolled is None:
        return []
    found: Counter[tuple[str, str, str]] = Counter()
    times: dict[tuple[str, str, str], list[datetime]] = defaultdict(list)
    for resource, queue, other, milliseconds, first, last in _pairs(scope, begin, end, rolled, now=now):
        names = {pk: scope.queues[pk].name for pk in (queue, other) if pk in scope.queues}
        is_of_chosen = not scope.chosen or scope.chosen in names.values()
        if queue in names and is_of_chosen and scope.resource in ("", resource):
            key = (names[queue], names.get(other, ""), resource)
            found[key] += milliseconds
            times[key] += (first, last)
    return [
        StarvedQueue(*key, milliseconds, min(times[key]), max(times[key])) for key, milliseconds in found.most_common()
    ]


def _pairs(
    scope: _Scope, begin: datetime, end: datetime, rolled: datetime, *, now: datetime
) -> Iterator[tuple[Any, ...]]:
    """The pairs of whole days that are added up, of the hours around them, and of spans after that."""
    added = min(rolled, end)
    days = floor(begin - _MOMENT, DAY) + DAY, floor(added, DAY)
    if days[0] >= days[1]:
        yield from _added_pairs(StarvedQueueTime, scope, floor(begin, HOUR), added)
    else:
        yield from _added_pairs(StarvedQueueTime, scope, floor(begin, HOUR), days[0])
        yield from _added_pairs(StarvedQueueDay, scope, *days)
        yield from _added_pairs(StarvedQueueTime, scope, days[1], added)
    if rolled < end:
        for _cluster, *pair in queue_sums.pairs(scope.clusters, max(rolled, begin), end, now=now):
            yield tuple(pair)


def _added_pairs(
    table: type[StarvedQueueTime | StarvedQueueDay], scope: _Scope, begin: datetime, end: datetime
) -> _Rows:
    if begin >= end:
        return ()
    rows = table._default_manager.filter(cluster_id__in=scope.clusters, at__gte=begin, at__lt=end).order_by()
    added = rows.values("resource", "queue_id", "other_id").annotate(
        whole=Sum("milliseconds"), first=Min("first_at"), last=Max("last_at")
    )
    return added.values_list("resource", "queue_id", "other_id", "whole", "first", "last")


def resources(user: User) -> list[str]:
    """The resources of cards that the queues of this person deserve, hold or wait for now, by name."""
    rows = QueueShareSpan.objects.filter(end_at=None)
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        rows = rows.filter(queue_id__in=[queue.pk for queue in queues.listed_visible_to(user)])
    return list(rows.order_by("resource").values_list("resource", flat=True).distinct())


def queue_hours_due() -> list[QuerySet[Any, Any]]:
    """Clusters with an hour to add (see `due_work`)."""
    return [MeasuredQueues.objects.filter(due_at__lte=due_work.present())]
