"""Sums of what happened to jobs: by minute, hour and day. They are deleted and written anew, hour by hour."""

from datetime import datetime
from typing import Any

from django.db import connection

from hekla.apps.measures.levels import DAY, HOUR, KEEP_MINUTES, floor

_KEYS = "queue_id, tenant_id, owner_id, kind, size, model, what, part"
_COLUMNS = f"level, cluster_id, at, {_KEYS}, count, milliseconds"
_DELETE = "DELETE FROM measures_jobsum WHERE level = %s AND cluster_id = %s AND at >= %s AND at < %s"
_MINUTES = (
    f"INSERT INTO measures_jobsum ({_COLUMNS})"  # noqa: S608  (names of our own)
    f" SELECT 1, cluster_id, date_trunc('minute', at, 'UTC') AS minute, {_KEYS}, count(*), sum(milliseconds)"
    f" FROM measures_jobmoment WHERE cluster_id = %s AND at >= %s AND at < %s GROUP BY cluster_id, minute, {_KEYS}"
)
_HOUR = (
    f"INSERT INTO measures_jobsum ({_COLUMNS})"  # noqa: S608
    f" SELECT 60, cluster_id, %s::timestamptz, {_KEYS}, count(*), sum(milliseconds)"
    f" FROM measures_jobmoment WHERE cluster_id = %s AND at >= %s AND at < %s GROUP BY cluster_id, {_KEYS}"
)
_DAY = (
    f"INSERT INTO measures_jobsum ({_COLUMNS})"  # noqa: S608
    f" SELECT 1440, cluster_id, %s::timestamptz, {_KEYS}, sum(count), sum(milliseconds)"
    " FROM measures_jobsum WHERE level = 60 AND cluster_id = %s AND at >= %s AND at < %s"
    f" GROUP BY cluster_id, {_KEYS}"
)


def write(cluster_id: int, hour: datetime, *, now: datetime) -> None:
    """Write the sums of one hour of a cluster, its minutes unless they are too old, and those of its day."""
    day = floor(hour, DAY)
    with connection.cursor() as cursor:
        _replace(cursor, 1, cluster_id, hour, hour + HOUR, _MINUTES if hour > now - KEEP_MINUTES else "")
        _replace(cursor, 60, cluster_id, hour, hour + HOUR, _HOUR)
        _replace(cursor, 1440, cluster_id, day, day + DAY, _DAY)


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
