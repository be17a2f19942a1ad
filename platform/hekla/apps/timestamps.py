"""Reads the timestamps of the database.

Django's reader takes each apart in Python, ten times as slowly: that is felt where thousands of pods are read.
"""

from datetime import UTC, datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
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


def register() -> None:
    """Let all connections that are opened from now on read timestamps so."""
    connection_created.connect(_register)
