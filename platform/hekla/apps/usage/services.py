"""Stores samples of resource use, and lowers their resolution with age.

Samples are not events: nothing reacts to one, and the log would hold little else. They are written as they come, all
readings of a cluster in one statement, and thinned once a minute:

    span        kept for    rows of a pod that runs all that time
    10 s        1 hour        360
    1 min       1 day       1,380
    10 min      30 days     4,176

So a pod has at most 5,916 rows, less than 1 MB; one that ran for an hour has 360 at its end, 60 an hour later, 6 a day
later, and none after thirty. The cost of thinning depends on the samples of one minute, not on the number of stored
samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from django.db import connection, transaction

from hekla.apps.clusters import leases
from hekla.apps.usage.levels import FINEST, LEVELS, Level
from hekla.apps.usage.models import Sample

_COLUMNS = 6
_INSERT = """
INSERT INTO usage_sample (pod_id, at, cpu_ms, memory_bytes, gpu_memory_bytes, gpu_thousandths, span_seconds)
SELECT *, %s FROM unnest(
    %s::bigint[], %s::timestamptz[], %s::bigint[], %s::bigint[], %s::bigint[], %s::integer[]
)
ON CONFLICT DO NOTHING
"""
"""One statement with a list for each column: a parameter for each value takes several times as long."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The use of a pod (by row id) up to `at`."""

    pod_id: int
    at: datetime
    cpu_seconds: float
    memory_bytes: int
    gpus_busy: float | None = None
    gpu_memory_bytes: int | None = None


def record(cluster_id: int, epoch: int, readings: Sequence[Reading]) -> None:
    """Store these readings. Raises LeaseLost."""
    columns = list(zip(*map(_row, readings), strict=True)) or [()] * _COLUMNS
    with transaction.atomic(), connection.cursor() as cursor:
        leases.assert_held(cluster_id, epoch)
        cursor.execute(_INSERT, [FINEST, *map(list, columns)])


def _row(reading: Reading) -> tuple[int, datetime, int, int, int | None, int | None]:
    busy = reading.gpus_busy
    return (
        reading.pod_id,
        reading.at,
        round(reading.cpu_seconds * 1000),
        reading.memory_bytes,
        reading.gpu_memory_bytes,
        None if busy is None else round(busy * 1000),
    )


def thin(*, now: datetime) -> None:
    """Merge samples that are too old for their resolution, and delete the oldest. Repeating it has no effect."""
    with transaction.atomic():
        for fine, coarse in pairwise(LEVELS):
            _merge(fine, coarse, now)
        Sample.objects.filter(span_seconds=LEVELS[-1].span_seconds, at__lt=now - LEVELS[-1].retention).delete()


def _merge(fine: Level, coarse: Level, now: datetime) -> None:
    """Merge only whole spans, so that no span is merged in two parts."""
    until = (now - fine.retention).timestamp() // coarse.span_seconds * coarse.span_seconds
    with connection.cursor() as cursor:
        cursor.execute(
            _MERGE,
            {"fine": fine.span_seconds, "coarse": coarse.span_seconds, "until": datetime.fromtimestamp(until, tz=UTC)},
        )


_MERGE = """
WITH old AS (
    DELETE FROM usage_sample WHERE span_seconds = %(fine)s AND at < %(until)s
    RETURNING pod_id, at, cpu_ms, memory_bytes, gpu_memory_bytes, gpu_thousandths
)
INSERT INTO usage_sample (pod_id, span_seconds, at, cpu_ms, memory_bytes, gpu_memory_bytes, gpu_thousandths)
SELECT pod_id, %(coarse)s, max(at), max(cpu_ms), max(memory_bytes), max(gpu_memory_bytes), avg(gpu_thousandths)::int
FROM old
GROUP BY pod_id, date_bin(make_interval(secs => %(coarse)s), at, 'epoch'::timestamptz)
"""
