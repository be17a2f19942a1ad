"""The database of the console: its version, size, biggest tables and slowest statements, with few cheap queries."""

from dataclasses import dataclass

from django.db import DatabaseError, connection, transaction
from django.db.backends.utils import CursorWrapper

_MOST_TABLES, _MOST_STATEMENTS, _LONGEST_STATEMENT = 12, 10, 500
_FACTS = """
    SELECT current_setting('server_version'), pg_database_size(current_database()),
        (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),
        current_setting('max_connections')::int,
        (SELECT extract(epoch FROM max(now() - xact_start))::float8 FROM pg_stat_activity
            WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid())
"""
_TABLES = """
    SELECT coalesce(parent.relname, one.relname) AS name, sum(pg_total_relation_size(one.oid))::bigint AS bytes,
        greatest(0, sum(one.reltuples))::bigint AS rows, count(*) FILTER (WHERE parent.oid IS NOT NULL) AS partitions
    FROM pg_class one
    LEFT JOIN pg_inherits link ON link.inhrelid = one.oid
    LEFT JOIN pg_class parent ON parent.oid = link.inhparent
    WHERE one.relkind = 'r' AND one.relnamespace = current_schema()::regnamespace
    GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %s
"""
_HAS_STATEMENTS = "SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'pg_stat_statements')"
_STATEMENTS = """
    SELECT left(query, %s), calls, mean_exec_time, total_exec_time, rows
    FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND query ~* '^\\s*(select|insert|update|delete|with)\\y'
    ORDER BY mean_exec_time DESC LIMIT %s
"""
"""Only statements whose values the extension replaces: others, such as ALTER ROLE, may contain passwords."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table with its indexes. `rows`: as last estimated; `partitions`: 0 for a table without."""

    name: str
    size_bytes: int
    rows: int
    partitions: int


@dataclass(frozen=True, slots=True)
class SlowStatement:
    """A statement without its values, with its times in milliseconds."""

    text: str
    calls: int
    mean_ms: float
    total_ms: float
    rows: int


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """The state of the database. `longest_seconds`: of the oldest transaction at work; None: there is none.

    `statements`: the slowest on average; None where the extension that counts them is not installed, or not for us.
    """

    version: str
    size_bytes: int
    connections: int
    max_connections: int
    longest_seconds: float | None
    tables: tuple[TableSize, ...]
    statements: tuple[SlowStatement, ...] | None


def database_state() -> DatabaseState:
    """The state of the database now."""
    with connection.cursor() as cursor:
        cursor.execute(_FACTS)
        version, size, connections, most, longest = cursor.fetchone()
        cursor.execute(_TABLES, [_MOST_TABLES])
        tables = tuple(TableSize(*row) for row in cursor.fetchall())
        statements = _statements(cursor)
    return DatabaseState(version.partition(" ")[0], size, connections, most, longest, tables, statements)


def _statements(cursor: CursorWrapper) -> tuple[SlowStatement, ...] | None:
    cursor.execute(_HAS_STATEMENTS)
    if not cursor.fetchone()[0]:
        return None
    try:
        with transaction.atomic():
            cursor.execute(_STATEMENTS, [_LONGEST_STATEMENT, _MOST_STATEMENTS])
            return tuple(SlowStatement(*row) for row in cursor.fetchall())
    except DatabaseError:  # it is not preloaded, or in a schema that our role does not look into
        return None
