"""Computes sums of GPU time from the facts, for whole minutes within one hour, and adds them up to hours and days.

Sums are deleted and written anew, so writing them again has no other result. Sums of clusters and of parts are added up
from those of nodes and of holders.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Q

from hekla.apps.measures import holdings, sum_tables
from hekla.apps.measures.levels import DAY, HOUR, KEEP_MINUTES, MINUTE, PARTS, floor, to_ms
from hekla.apps.measures.models import GpuCapacity, GpuHolding
from hekla.apps.measures.sum_tables import StepAmounts, Sums, SumTable
from hekla.apps.usage import selectors as usage
from hekla.domain.gpu_time import HELD, IDLE_BELOW, CapacitySpan, GpuClass, GpuShare, NodeState, PodHolding
from hekla.domain.gpu_time import divide_minutes as divide

Facts = dict[tuple[str, str], tuple[list[CapacitySpan], list[PodHolding]]]
"""By node and resource."""
_BEYOND = "beyond"
_NAME_LENGTH = 253
_OF_ALL, _OF_HELD = (*(one.value for one in GpuClass), _BEYOND), tuple(one.value for one in HELD)
NODES = SumTable("measures_nodegputime", ("node", "model"), _OF_ALL)
HOLDERS = SumTable("measures_holdergputime", ("queue_id", "tenant_id", "owner_id", "kind", "model"), _OF_HELD)
_CLUSTERS = SumTable("measures_clustergputime", ("model",), _OF_ALL)
_PARTS = SumTable("measures_partgputime", ("by", "key", "model"), _OF_HELD)


def write(cluster_id: int, begin: datetime, end: datetime, *, now: datetime) -> None:
    """Write the sums of a cluster between these whole minutes of one hour, and those of its hour.

    Minutes that are older than they are kept are not written. `write_day` adds up the hours: once for many of them.
    """
    hour = floor(begin, HOUR)
    step = HOUR if begin == hour and hour + HOUR <= now - KEEP_MINUTES else MINUTE
    found = _sums(cluster_id, begin, end, hour, step)
    with connection.cursor() as cursor:
        for table, sums in found.items():
            sum_tables.delete(cursor, table, cluster_id, (1, begin, end))
            if step is MINUTE:
                sum_tables.copy(cursor, table, (1, cluster_id), _times(begin, end, step), sums)
            if begin == hour:
                sum_tables.delete(cursor, table, cluster_id, (60, hour, hour + HOUR))
                sum_tables.copy(cursor, table, (60, cluster_id), _times(hour, end, HOUR), _totals(sums))
            else:
                sum_tables.add_up(cursor, table, cluster_id, (60, hour, hour + HOUR, 1))
        _write_clusters(cursor, cluster_id, (1, begin, end))
        _write_clusters(cursor, cluster_id, (60, hour, hour + HOUR))
        _write_parts(cursor, cluster_id, (60, hour, hour + HOUR))


def write_day(cluster_id: int, day: datetime) -> None:
    """Write the sums of a cluster in this UTC day from those of its hours."""
    place = (1440, day, day + DAY)
    with connection.cursor() as cursor:
        for table in (NODES, HOLDERS):
            sum_tables.add_up(cursor, table, cluster_id, (*place, 60))
        _write_clusters(cursor, cluster_id, place)
        _write_parts(cursor, cluster_id, place)


_Place = tuple[int, datetime, datetime]
"""The level, begin and end."""


def _write_clusters(cursor: Any, cluster_id: int, place: _Place) -> None:  # noqa: ANN401  (a cursor of Django passes on to that of psycopg)
    """Write the sums of the cluster from those of nodes."""
    sum_tables.delete(cursor, _CLUSTERS, cluster_id, place)
    sum_tables.derive(cursor, (NODES, _CLUSTERS), "model", cluster_id, place)


def _write_parts(cursor: Any, cluster_id: int, place: _Place) -> None:  # noqa: ANN401
    """Write the sums by one fact from those of holders."""
    sum_tables.delete(cursor, _PARTS, cluster_id, place)
    for name, column in PARTS.items():
        sum_tables.derive(cursor, (HOLDERS, _PARTS), f"'{name}', {column}::text, model", cluster_id, place)


def _sums(cluster_id: int, begin: datetime, end: datetime, hour: datetime, step: timedelta) -> dict[SumTable, Sums]:
    rows = list(_overlapping(cluster_id, begin, end))
    facts = _facts(cluster_id, rows, begin, end, hour)
    since, until, length = to_ms(begin), to_ms(end), step // timedelta(milliseconds=1)
    count = -((since - until) // length)
    of_nodes: dict[tuple[Any, ...], StepAmounts] = defaultdict(lambda: defaultdict(lambda: [0] * count))
    of_holders: dict[tuple[Any, ...], StepAmounts] = defaultdict(lambda: defaultdict(lambda: [0] * count))
    holders = [(row.queue_id, row.tenant_id, row.owner_id, row.kind) for row in rows]
    for (node, resource), (spans, held) in facts.items():
        for share in divide(spans, held, since, until, hour=to_ms(hour)):
            model = share.model or resource[:_NAME_LENGTH]
            _add(of_nodes[node, model][share.what or _BEYOND], share, since, length)
            if share.holder is not None and share.what:
                _add(of_holders[*holders[share.holder], model][share.what], share, since, length)
    return {NODES: of_nodes, HOLDERS: of_holders}


def _add(course: list[int], share: GpuShare, begin: int, length: int) -> None:
    """Add a share to the steps of this length, in milliseconds, that it overlaps."""
    since, until, gpus = share.since - begin, share.until - begin, share.gpus
    first, last = since // length, (until - 1) // length
    if first == last:
        course[first] += gpus * (until - since)
        return
    course[first] += gpus * ((first + 1) * length - since)
    for place in range(first + 1, last):
        course[place] += gpus * length
    course[last] += gpus * (until - last * length)


def _overlapping(cluster_id: int, begin: datetime, end: datetime) -> Iterable[GpuHolding]:
    rows = holdings.overlapping(GpuHolding.objects.filter(cluster_id=cluster_id, gpus__gt=0), begin, end)
    return rows.order_by("pod_id", "resource")


def _facts(cluster_id: int, rows: Sequence[GpuHolding], begin: datetime, end: datetime, hour: datetime) -> Facts:
    found: Facts = defaultdict(lambda: ([], []))
    spans = GpuCapacity.objects.filter(Q(end_at=None) | Q(end_at__gt=begin), cluster_id=cluster_id, begin_at__lt=end)
    for span in spans:
        until = holdings.FAR if span.end_at is None else to_ms(span.end_at)
        facts = CapacitySpan(to_ms(span.begin_at), until, span.gpus, NodeState(span.state), span.model)
        found[span.node, span.resource][0].append(facts)
    least = {row.pod_id: round(IDLE_BELOW * row.gpus) for row in rows if row.ready_at is not None and not row.outcome}
    minutes = usage.gpu_minute_masks(least, begin=begin, end=end, hour=hour) if least else {}
    for key, row in enumerate(rows):
        measured, idle = minutes.get(row.pod_id, (0, 0))
        found[row.node, row.resource][1].append(holdings.as_holding(row, key, measured=measured, idle=idle))
    return found


def _times(begin: datetime, end: datetime, step: timedelta) -> list[datetime]:
    return [begin + place * step for place in range(-((begin - end) // step))]


def _totals(sums: Sums) -> Sums:
    return {keys: {what: [sum(amounts)] for what, amounts in course.items()} for keys, course in sums.items()}
