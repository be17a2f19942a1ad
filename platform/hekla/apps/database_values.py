"""Reads the timestamps and the JSON of the database.

Django's readers need many steps in Python for each value: that is felt where thousands of pods are read, and in each
list, whose rows have ten such values.
"""

from datetime import UTC, datetime
from json import JSONDecoder
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.models import JSONField
from psycopg.abc import Buffer
from psycopg.types.datetime import TimestamptzLoader


class UtcLoader(TimestamptzLoader):
    """Reads a timestamp in the form of a session in UTC, as all sessions of Django are."""

    timezone = UTC
    """Django compares it with the time zone of the connection."""

    def load(self, data: Buffer) -> datetime:
        """The instant, in UTC. Raises DataError for years that Python does not have."""
        try:
            return datetime.fromisoformat(str(data, "ascii"))
        except ValueError:
            return super().load(data)


def _register(connection: BaseDatabaseWrapper, **_: Any) -> None:  # noqa: ANN401
    connection.connection.adapters.register_loader("timestamptz", UtcLoader)


_scan: Any = JSONDecoder().scan_once  # type: ignore[attr-defined]
_django_reads: Any = JSONField.from_db_value


def _read_json(field: JSONField, text: Any, expression: object, connection: object) -> Any:  # noqa: ANN401
    """The value of a column, as Django reads it, in one step where the text is the database's own and nothing else."""
    if field.decoder is None and isinstance(text, str):
        try:
            value, end = _scan(text, 0)
        except (StopIteration, ValueError):  # Django decides what this is
            end = -1
        if end == len(text):
            return value
    return _django_reads(field, text, expression, connection)


def register() -> None:
    """Let all JSON, and the timestamps of all connections that are opened from now on, be read so."""
    connection_created.connect(_register)
    JSONField.from_db_value = _read_json  # type: ignore[method-assign, assignment]
