"""Computes sums of GPU time from the facts, for whole minutes within one hour, and adds them up to hours and days.

Sums are deleted and written anew, so writing them again has no other result.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Q

from hekla.apps.measures import holdings
from hekla.apps.measures.levels import DAY, HOUR, KEEP_MINUTES, floor, from_ms, to_ms
from hekla.apps.measures.models import GpuCapacity, GpuHolding
from hekla.apps.usage import selectors as usage
from hekla.domain.gpu_time import HELD, IDLE_BELOW, MINUTE_MS, CapacitySpan, GpuClass, NodeState, PodHolding, divide

Facts = dict[tuple[str, str], tuple[list[CapacitySpan], list[PodHolding]]]
"""By node and resource."""
_HELD = [one.value for one in HELD]
_ALL = [one.value for one in GpuClass]
_BEYOND = "beyond"
_NAME_LENGTH = 253
_NODE_KEYS, _HOLDER_KEYS = ("node", "model"), ("queue_id", "tenant_id", "owner_id", "kind", "model")
_Sums = dict[tuple[Any, ...], Counter[str]]


def write(cluster_id: int, begin: datetime, end: datetime, *, now: datetime) -> None:
    """Write the sums of a cluster between these whole minutes of one hour, and those of its hour and day."""
    hour = floor(begin, HOUR)
    rows = list(_overlapping(cluster_id, begin, end))
    facts = _facts(cluster_id, rows, begin, end, hour)
    of_nodes, of_holders = _sums(facts, rows, to_ms(begin), to_ms(end), to_ms(hour))
    with connection.cursor() as cursor:
        _replace(cursor, "measures_nodegputime", cluster_id, (begin, end), of_nodes)
        _replace(cursor, "measures_holdergputime", cluster_id, (begin, end), of_holders)
        for table, keys, classes in _TABLES:
            _add_up(cursor, table, (keys, classes), cluster_id, (60, hour, hour + HOUR, 1))
            day = floor(hour, DAY)
            _add_up(cursor, table, (keys, classes), cluster_id, (1440, day, day + DAY, 60))
            if hour + HOUR <= now - KEEP_MINUTES:
                _delete(cursor, table, cluster_id, 1, (begin, end))


_TABLES = (
    ("measures_nodegputime", _NODE_KEYS, [*_ALL, _BEYOND]),
    ("measures_holdergputime", _HOLDER_KEYS, _HELD),
)


def _overlapping(cluster_id: int, begin: datetime, end: datetime) -> Iterable[GpuHolding]:
    rows = holdings.overlapping(GpuHolding.objects.filter(cluster_id=cluster_id), begin, end)
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


def _sums(facts: Facts, rows: Sequence[GpuHolding], begin: int, end: int, hour: int) -> tuple[_Sums, _Sums]:
    """The sums of nodes and of holders, by minute and keys."""
    of_nodes: _Sums = defaultdict(Counter)
    of_holders: _Sums = defaultdict(Counter)
    holders = [(row.queue_id, row.tenant_id, row.owner_id, row.kind) for row in rows]
    for (node, resource), (spans, held) in facts.items():
        for since in range(begin, end, MINUTE_MS):
            present = [one for one in held if one.bound < since + MINUTE_MS and one.end > since]
            for share in divide(spans, present, since, since + MINUTE_MS, minute=(since - hour) // MINUTE_MS):
                model = share.model or resource[:_NAME_LENGTH]
                of_nodes[since, node, model][share.what or _BEYOND] += share.gpu_us
                if share.holder is not None and share.what:
                    of_holders[since, *holders[share.holder], model][share.what] += share.gpu_us
    return of_nodes, of_holders


def _replace(
    cursor: Any,  # noqa: ANN401  (a cursor of Django passes on to that of psycopg)
    table: str,
    cluster_id: int,
    between: tuple[datetime, datetime],
    sums: _Sums,
) -> None:
    _delete(cursor, table, cluster_id, 1, between)
    keys, classes = next((keys, classes) for name, keys, classes in _TABLES if name == table)
    columns = ", ".join(("level", "cluster_id", "at", *keys, *classes))
    with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
        for row in _rows(cluster_id, sums, classes):
            copy.write_row(row)


def _rows(cluster_id: int, sums: Mapping[tuple[Any, ...], Counter[str]], classes: Sequence[str]) -> Iterator[list[Any]]:
    times: dict[int, datetime] = {}
    for (at, *keys), amounts in sums.items():
        moment = times.get(at) or times.setdefault(at, from_ms(at))
        yield [1, cluster_id, moment, *keys, *(amounts[one] for one in classes)]


def _delete(
    cursor: Any,  # noqa: ANN401
    table: str,
    cluster_id: int,
    level: int,
    between: tuple[datetime, datetime],
) -> None:
    where = "level = %s AND cluster_id = %s AND at >= %s AND at < %s"
    cursor.execute(f"DELETE FROM {table} WHERE {where}", [level, cluster_id, *between])  # noqa: S608


def _add_up(
    cursor: Any,  # noqa: ANN401
    table: str,
    columns: tuple[Sequence[str], Sequence[str]],
    cluster_id: int,
    to: tuple[int, datetime, datetime, int],
) -> None:
    """Replace one hour or day by the sum of its minutes or hours. `to`: the level, begin, end, and the finer level."""
    level, begin, end, finer = to
    _delete(cursor, table, cluster_id, level, (begin, end))
    keys, classes = ", ".join(columns[0]), ", ".join(columns[1])
    cursor.execute(
        f"INSERT INTO {table} (level, cluster_id, at, {keys}, {classes})"  # noqa: S608  (names of our own)
        f" SELECT %s, cluster_id, %s, {keys}, {', '.join(f'sum({one})' for one in columns[1])} FROM {table}"
        f" WHERE level = %s AND cluster_id = %s AND at >= %s AND at < %s GROUP BY cluster_id, {keys}",
        [level, begin, finer, cluster_id, begin, end],
    )
