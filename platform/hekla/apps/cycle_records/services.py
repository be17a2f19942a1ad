"""Stores recorded cycles, and deletes the oldest. They are not events: nothing reacts to one.

A cluster keeps records for `MAX_AGE`, of at most `MAX_BYTES` and `MAX_ROWS` in all. Whole records go together with
those that refer to them, so a little more may be stored for some minutes.
"""

from datetime import datetime, timedelta

from django.db import connection, transaction

from hekla.apps.clusters import leases
from hekla.apps.cycle_records.models import CycleRecord

MAX_AGE = timedelta(days=7)
MAX_BYTES = 256 * 1024**2
MAX_ROWS = 20_000
MAX_RECORD_BYTES = 16_000_000
"""A larger document is not stored."""


def store(cluster_id: int, epoch: int, row: CycleRecord) -> None:
    """Store the record of a cycle. Raises LeaseLost."""
    with transaction.atomic():
        leases.assert_held(cluster_id, epoch)
        row.save(force_insert=True)


def delete_old(cluster_id: int, epoch: int, *, now: datetime) -> int:
    """Delete the records beyond the bounds. Returns how many. Raises LeaseLost."""
    with transaction.atomic():
        leases.assert_held(cluster_id, epoch)
        rows = CycleRecord.objects.filter(cluster_id=cluster_id)
        first = _first_within(cluster_id, now)
        if first is None:
            return rows.delete()[0]
        # A whole record stays as long as a later one refers to it.
        needed = rows.filter(pk__gte=first, base__lt=first).order_by("base").values_list("base", flat=True).first()
        return rows.filter(pk__lt=first if needed is None else needed).delete()[0]


def _first_within(cluster_id: int, now: datetime) -> int | None:
    """The oldest record within the bounds; None if none is."""
    with connection.cursor() as cursor:
        cursor.execute(_FIRST, {"cluster": cluster_id, "since": now - MAX_AGE, "bytes": MAX_BYTES, "rows": MAX_ROWS})
        found: tuple[int | None] | None = cursor.fetchone()
    return found[0] if found else None


_FIRST = """
SELECT min(id) FROM (
    SELECT id, at, sum(size) OVER newest AS bytes, row_number() OVER newest AS number
    FROM cycle_records_cyclerecord WHERE cluster_id = %(cluster)s
    WINDOW newest AS (ORDER BY id DESC)
) AS found
WHERE at >= %(since)s AND bytes <= %(bytes)s AND number <= %(rows)s
"""
