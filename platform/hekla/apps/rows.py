"""Writes many rows at once."""

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Field, Model

_BATCH = 2000


def insert_all(rows: Sequence[Model]) -> None:
    """Insert rows whose primary keys are set. Django's `bulk_create` takes several times as long for a few rows."""
    if not rows:
        return
    meta, quote = rows[0]._meta, connection.ops.quote_name
    columns = meta.concrete_fields
    names = ", ".join(quote(str(column.column)) for column in columns)
    marks = f"({', '.join(['%s'] * len(columns))})"
    with connection.cursor() as cursor:
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            cursor.execute(
                f"INSERT INTO {quote(meta.db_table)} ({names}) VALUES {', '.join([marks] * len(batch))}",  # noqa: S608
                [_prepared(column, row) for row in batch for column in columns],
            )


def save_all(rows: Sequence[Model], fields: Sequence[str]) -> None:
    """Update these fields of existing rows.

    One statement per row, all sent together. Django's `bulk_update` builds one statement as long as rows times fields,
    and building it takes longer than the database needs to run it.
    """
    if not rows:
        return
    meta, quote = rows[0]._meta, connection.ops.quote_name
    columns = [column for column in meta.concrete_fields if column.name in fields]
    names = ", ".join(f"{quote(str(column.column))} = %s" for column in columns)
    with connection.cursor() as cursor:
        cursor.executemany(
            f"UPDATE {quote(meta.db_table)} SET {names} WHERE id = %s",  # noqa: S608  (names of our own tables)
            [[*(_prepared(column, row) for column in columns), row.pk] for row in rows],
        )


def _prepared(column: "Field[Any, Any]", row: Model) -> Any:  # noqa: ANN401  (the form depends on the column)
    return column.get_db_prep_save(getattr(row, column.attname), connection)
