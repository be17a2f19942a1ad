"""Rows and sizes on disk of all tables that are large or hold measures."""

from typing import Any

from django.db import connection

_LEAST_BYTES = 10_000_000
_SIZES = """
SELECT relname, greatest(reltuples, 0)::bigint, pg_table_size(oid), pg_indexes_size(oid)
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
ORDER BY pg_total_relation_size(oid) DESC
"""


def measure() -> list[dict[str, Any]]:
    """By table: rows (estimated after ANALYZE), and bytes of the table and of its indexes. The largest first."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute(_SIZES)
        names = ("table", "rows", "bytes", "index_bytes")
        found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return [
        one for one in found if one["table"].startswith("measures_") or one["bytes"] + one["index_bytes"] > _LEAST_BYTES
    ]
