"""Adds up the amounts of queues over time, from spans to hours and from hours to days. Sums can be written again."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from hekla.apps.measures.levels import DAY, HOUR, floor
from hekla.apps.measures.queue_levels import HOLDS, MOST_PAIRS

AMOUNTS = ("deserved", "allocated", "waiting", "borrowed", "lent")
_KEYS = "cluster_id, queue_id, resource"
_HELD = """
    WITH held AS (
        SELECT span.*, least(
            coalesce(span.end_at, least(measured.looked_at + %(holds)s, %(now)s)), %(end)s
        ) AS over_at
        FROM measures_queuesharespan span JOIN measures_measuredqueues measured USING (cluster_id)
        WHERE span.cluster_id = ANY(%(clusters)s) AND span.begin_at < %(end)s
            AND (span.end_at IS NULL OR span.end_at > %(begin)s)
    )
"""
"""The spans that overlap the time, each with its end. Nobody knows what follows long after the last look."""
_MILLISECONDS = "(extract(epoch FROM {until} - {since}) * 1000)::bigint"
_BY_STEP = f"""
    SELECT step.at, {_KEYS}, bool_or(is_inner), {", ".join(f"sum({one} * ms)::bigint" for one in AMOUNTS)}
    FROM generate_series(%(begin)s, %(end)s - interval '1 microsecond', %(step)s) AS step(at)
    JOIN held ON held.begin_at < step.at + %(step)s AND held.over_at > step.at
    CROSS JOIN LATERAL (SELECT {
    _MILLISECONDS.format(until="least(over_at, step.at + %(step)s)", since="greatest(begin_at, step.at)")
} AS ms) AS time
    GROUP BY step.at, {_KEYS}
"""  # noqa: S608  (names of our own)
_PIECES = """
    , moments AS (
        SELECT cluster_id, greatest(begin_at, %(begin)s) AS at FROM held UNION SELECT cluster_id, over_at FROM held
    ), pieces AS (
        SELECT cluster_id, at AS since, lead(at) OVER (PARTITION BY cluster_id ORDER BY at) AS until FROM moments
    ), unequal AS (
        SELECT cluster_id, resource, queue_id, since, until, allocated < deserved AS is_below
        FROM held JOIN pieces USING (cluster_id)
        WHERE since >= %(begin)s AND begin_at <= since AND over_at >= until AND NOT is_inner
            AND (allocated > deserved OR (allocated < deserved AND waiting > 0))
    )
"""
"""Queues below and above what they deserve, in each piece of the time in which nothing changes: a look at a cluster
ends all of its spans at once, so pieces are few, and queues meet in them without comparing all spans with all others.
"""
_PAIRS = f"""
    SELECT below.cluster_id, below.resource, below.queue_id, above.queue_id AS other_id,
        (sum(extract(epoch FROM below.until - below.since)) * 1000)::bigint AS ms, min(below.since), max(below.until)
    FROM unequal below JOIN unequal above ON above.cluster_id = below.cluster_id AND above.resource = below.resource
        AND above.since = below.since
    WHERE below.is_below AND NOT above.is_below
    GROUP BY below.cluster_id, below.resource, below.queue_id, above.queue_id
    ORDER BY ms DESC, below.queue_id, above.queue_id LIMIT {MOST_PAIRS}
"""  # noqa: S608
_PAIR_COLUMNS = "at, cluster_id, resource, queue_id, other_id, milliseconds, first_at, last_at"
_WRITE_PAIRS = f"""
    INSERT INTO measures_starvedqueuetime ({_PAIR_COLUMNS})
    {_HELD}{_PIECES} SELECT %(begin)s, pairs.* FROM ({_PAIRS}) AS pairs
"""  # noqa: S608
_WRITE_PAIRS_OF_DAY = f"""
    INSERT INTO measures_starvedqueueday ({_PAIR_COLUMNS})
    SELECT %s, cluster_id, resource, queue_id, other_id, sum(milliseconds), min(first_at), max(last_at)
    FROM measures_starvedqueuetime WHERE cluster_id = %s AND at >= %s AND at < %s
    GROUP BY cluster_id, resource, queue_id, other_id
"""  # noqa: S608
_COLUMNS = f"{_KEYS}, is_inner, {', '.join(AMOUNTS)}"


def by_step(
    clusters: Sequence[int], begin: datetime, end: datetime, step: timedelta, *, now: datetime
) -> list[tuple[Any, ...]]:
    """Of spans: the begin of the step, cluster, queue, resource, whether it is inner, and the amounts over time."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD + _BY_STEP, _values(clusters, begin, end, now) | {"step": step})
        return list(cursor.fetchall())


def pairs(clusters: Sequence[int], begin: datetime, end: datetime, *, now: datetime) -> list[tuple[Any, ...]]:
    """Of spans: cluster, resource, queue below, queue above, milliseconds, first begin, last end."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD + _PIECES + _PAIRS, _values(clusters, begin, end, now))
        return list(cursor.fetchall())


def write_hour(cluster_id: int, hour: datetime, *, now: datetime) -> None:
    """Write the sums of this hour and of its day, and the starved queues of both."""
    values, day = _values([cluster_id], hour, hour + HOUR, now) | {"step": HOUR}, floor(hour, DAY)
    with connection.cursor() as cursor:
        _delete(cursor, 60, cluster_id, hour)
        cursor.execute(
            f"INSERT INTO measures_queuesharetime (level, at, {_COLUMNS})"  # noqa: S608  (names of our own)
            f" {_HELD} SELECT 60, sums.* FROM ({_BY_STEP}) AS sums",
            values,
        )
        _delete(cursor, 1440, cluster_id, day)
        added = ", ".join(f"sum({one})" for one in AMOUNTS)
        cursor.execute(
            f"INSERT INTO measures_queuesharetime (level, at, {_COLUMNS})"  # noqa: S608
            f" SELECT 1440, %s, {_KEYS}, bool_or(is_inner), {added} FROM measures_queuesharetime"
            f" WHERE level = 60 AND cluster_id = %s AND at >= %s AND at < %s GROUP BY {_KEYS}",
            [day, cluster_id, day, day + DAY],
        )
        cursor.execute("DELETE FROM measures_starvedqueuetime WHERE cluster_id = %s AND at = %s", [cluster_id, hour])
        cursor.execute(_WRITE_PAIRS, values)
        cursor.execute("DELETE FROM measures_starvedqueueday WHERE cluster_id = %s AND at = %s", [cluster_id, day])
        cursor.execute(_WRITE_PAIRS_OF_DAY, [day, cluster_id, day, day + DAY])


def _delete(cursor: Any, level: int, cluster_id: int, at: datetime) -> None:  # noqa: ANN401
    cursor.execute(
        "DELETE FROM measures_queuesharetime WHERE level = %s AND cluster_id = %s AND at = %s", [level, cluster_id, at]
    )


def _values(clusters: Sequence[int], begin: datetime, end: datetime, now: datetime) -> dict[str, Any]:
    return {"clusters": list(clusters), "begin": begin, "end": end, "now": now, "holds": HOLDS}
