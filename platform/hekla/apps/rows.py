"""Writes many rows at once."""

from collections.abc import Sequence

from django.db import connection
from django.db.models import Model


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
            [
                [*(column.get_db_prep_save(getattr(row, column.attname), connection) for column in columns), row.pk]
                for row in rows
            ],
        )
