"""Writes many rows at once."""

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Field, Model

BATCH = 2000
"""The most rows of one statement."""


def insert_all(rows: Sequence[Model]) -> None:
    """Insert rows whose primary keys are set. Django's `bulk_create` takes several times as long for a few rows."""
    with connection.cursor() as cursor:
        for start in range(0, len(rows), BATCH):
            cursor.execute(*insertion(rows[start : start + BATCH]))


def insertion(rows: Sequence[Model], keys: Sequence[str] = ()) -> tuple[str, list[Any]]:
    """The statement that inserts these rows, and its parameters. `keys`: their primary keys as SQL, if not set."""
    meta, quote = rows[0]._meta, connection.ops.quote_name
    columns = [column for column in meta.concrete_fields if not (keys and column.primary_key)]
    names = ", ".join(quote(str(column.column)) for column in ([meta.pk, *columns] if keys else columns))
    marks = ", ".join(["%s"] * len(columns))
    values = ", ".join(f"({key}, {marks})" for key in keys) if keys else ", ".join([f"({marks})"] * len(rows))
    parameters = [_prepared(column, row) for row in rows for column in columns]
    return f"INSERT INTO {quote(meta.db_table)} ({names}) VALUES {values}", parameters  # noqa: S608


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
