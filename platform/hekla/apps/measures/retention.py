"""Deletes rows that are too old, some at a time: after a long pause there may be millions of them."""

from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Model

MOST_ROWS = 20_000
"""Of one table and level in one call, which comes once a minute: more than 10,000 nodes write in a minute."""


def delete_oldest(model: type[Model], column: str, before: datetime, *, level: int | None = None) -> int:
    """Delete the oldest rows whose `column` is earlier than `before`, of this level if there are levels.

    Returns how many. At most `MOST_ROWS`: the next call goes on. Tables that grow need an index by level and `column`.
    """
    of_level, values = ("level = %s AND ", [level]) if level is not None else ("", list[Any]())
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {table} WHERE ctid = ANY(ARRAY("  # noqa: S608  (names of our own)
            f"SELECT ctid FROM {table} WHERE {of_level}{column} < %s ORDER BY {column} LIMIT {MOST_ROWS}))",
            [*values, before],
        )
        return int(cursor.rowcount)
