"""Sums of what happened to jobs: by minute, hour and day. They are deleted and written anew, hour by hour.

Sums by one fact alone (`PartJobSum`) are added up from them in the same transaction, so they cannot differ. A day
has many rows, so it is written when its last hour is over; reports read the present day from hours.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connection

from hekla.apps.measures.levels import DAY, HOUR, KEEP_MINUTES, floor

ALL = "all"
OF_HOURS = {"queue": "queue_id::text", "size": "size", "kind": "kind", "model": "model"}
"""The facts by which hours and days are added up, as SQL."""
OF_DAYS = {"tenant": "tenant_id::text", "person": "owner_id::text"}
"""The facts by which only days are: there are many tenants and people, and hours have about as many rows themselves."""
NARROW = ("kind", "size", "model")
"""Facts with few values. A filter by one of them leaves many rows."""
PAIRS = {
    (first, second): f"{column} || '|' || {second}"
    for place, (first, column) in enumerate(
        (("queue", "queue_id"), ("tenant", "tenant_id"), ("kind", "kind"), ("size", "size"))
    )
    for second in NARROW[max(place - 1, 0) :]
}
"""Two facts by which days are added up together, as SQL: their values with a line between them."""
OF_PAIRS = {f"{first}.{second}": value for (first, second), value in PAIRS.items()}
_KEYS = "queue_id, tenant_id, owner_id, kind, size, model, what, part"
_COLUMNS = f"level, cluster_id, at, {_KEYS}, count, milliseconds"
_ORDER = "ORDER BY queue_id, tenant_id, owner_id"
"""Rows of a queue, tenant or person lie together, so a report of one of them reads few pages."""
_DELETE = "DELETE FROM measures_jobsum WHERE level = %s AND cluster_id = %s AND at >= %s AND at < %s"
_MINUTES = (
    f"INSERT INTO measures_jobsum ({_COLUMNS})"  # noqa: S608  (names of our own)
    f" SELECT 1, cluster_id, date_trunc('minute', at, 'UTC') AS minute, {_KEYS}, count(*), sum(milliseconds)"
    f" FROM measures_jobmoment WHERE cluster_id = %s AND at >= %s AND at < %s GROUP BY cluster_id, minute, {_KEYS}"
)
_HOUR = (
    f"INSERT INTO measures_jobsum ({_COLUMNS})"  # noqa: S608
    f" SELECT 60, cluster_id, %s::timestamptz, {_KEYS}, count(*), sum(milliseconds)"
    f" FROM measures_jobmoment WHERE cluster_id = %s AND at >= %s AND at < %s GROUP BY cluster_id, {_KEYS} {_ORDER}"
)
_DAY = (
    f"INSERT INTO measures_jobsum ({_COLUMNS})"  # noqa: S608
    f" SELECT 1440, cluster_id, %s::timestamptz, {_KEYS}, sum(count), sum(milliseconds)"
    " FROM measures_jobsum WHERE level = 60 AND cluster_id = %s AND at >= %s AND at < %s"
    f" GROUP BY cluster_id, {_KEYS} {_ORDER}"
)
_DELETE_PARTS = "DELETE FROM measures_partjobsum WHERE level = %s AND cluster_id = %s AND at = %s"


def _parts(facts: Mapping[str, str]) -> str:
    """The statement that adds up sums of a level by each of these facts."""
    values = ", ".join(f"('{name}', {value})" for name, value in {ALL: "''", **facts}.items())
    return (
        "INSERT INTO measures_partjobsum"  # noqa: S608  (names of our own)
        " (level, cluster_id, at, by, key, what, part, count, milliseconds)"
        " SELECT level, cluster_id, at, fact.name, fact.value, what, part, sum(count), sum(milliseconds)"
        f" FROM measures_jobsum CROSS JOIN LATERAL (VALUES {values}) AS fact (name, value)"
        " WHERE level = %s AND cluster_id = %s AND at = %s"
        " GROUP BY level, cluster_id, at, fact.name, fact.value, what, part"
    )


_PLACES = (
    "INSERT INTO measures_partjobsum (level, cluster_id, at, by, key, what, part, count, milliseconds)"
    " SELECT 1440, cluster_id, %s::timestamptz, place.name, place.value, what, part, count(*), 0"
    " FROM measures_jobmoment CROSS JOIN LATERAL"
    " (VALUES ('node', node), ('image', image), ('exit_code', exit_code::text)) AS place (name, value)"
    " WHERE what = 'failed' AND place.value <> '' AND cluster_id = %s AND at >= %s AND at < %s"
    " GROUP BY cluster_id, place.name, place.value, what, part"
)
"""Where jobs failed, by day."""
_HOUR_PARTS, _DAY_PARTS = _parts(OF_HOURS), _parts(OF_HOURS | OF_DAYS | OF_PAIRS)


def write(cluster_id: int, hour: datetime, *, now: datetime, with_day: bool) -> None:
    """Write the sums of one hour of a cluster, its minutes unless they are too old, and those of its day if wanted."""
    day = floor(hour, DAY)
    with connection.cursor() as cursor:
        _replace(cursor, 1, cluster_id, hour, hour + HOUR, _MINUTES if hour > now - KEEP_MINUTES else "")
        _replace(cursor, 60, cluster_id, hour, hour + HOUR, _HOUR)
        _replace_parts(cursor, 60, cluster_id, hour, _HOUR_PARTS)
        if with_day:
            _replace(cursor, 1440, cluster_id, day, day + DAY, _DAY)
            _replace_parts(cursor, 1440, cluster_id, day, _DAY_PARTS)
            cursor.execute(_PLACES, [day, cluster_id, day, day + DAY])


def _replace_parts(cursor: Any, level: int, cluster_id: int, at: datetime, insert: str) -> None:  # noqa: ANN401
    for statement in (_DELETE_PARTS, insert):
        cursor.execute(statement, [level, cluster_id, at])


def _replace(
    cursor: Any,  # noqa: ANN401  (a cursor of Django passes on to that of psycopg)
    level: int,
    cluster_id: int,
    begin: datetime,
    end: datetime,
    insert: str,
) -> None:
    cursor.execute(_DELETE, [level, cluster_id, begin, end])
    if insert:
        first = [] if level == 1 else [begin]
        cursor.execute(insert, [*first, cluster_id, begin, end])
