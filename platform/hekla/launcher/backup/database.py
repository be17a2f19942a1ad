"""Dumps and restores the database with PostgreSQL's programs."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import psycopg

from hekla.launcher.embedded.programs import postgres_programs
from hekla.launcher.terminal import LaunchRefused

_MIGRATIONS = "SELECT app || '.' || name FROM django_migrations ORDER BY id"
_ASIDE = "replaced_by_a_backup"


def changes(url: str) -> tuple[str, ...]:
    """The applied migrations. Raises LaunchRefused if the database is not Hekla's, or unreachable."""
    try:
        with _connected(url) as connection:
            return tuple(row[0] for row in connection.execute(_MIGRATIONS))
    except psycopg.errors.UndefinedTable:
        raise LaunchRefused("The database holds no Hekla.") from None


def is_empty(url: str) -> bool:
    """Whether the database has no tables."""
    with _connected(url) as connection:
        found = connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public' LIMIT 1").fetchone()
    return found is None


def version(url: str) -> int:
    """The major version of the server."""
    with _connected(url) as connection:
        return connection.info.server_version // 10_000


def dump(url: str, place: Path) -> None:
    """Dump a consistent snapshot to `place`, without blocking others. Raises LaunchRefused."""
    _run("pg_dump", url, "--format=custom", "--no-owner", "--no-privileges", f"--file={place}")


def restore(url: str, place: Path) -> None:
    """Restore a dump into an empty database in one transaction, all or nothing. Raises LaunchRefused."""
    _run("pg_restore", url, "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error", str(place))


@contextmanager
def set_aside(url: str) -> Iterator[None]:
    """Empty the database for the duration of the context. Restores the old content after an error."""
    with _connected(url, autocommit=True) as connection:
        connection.execute(f"ALTER SCHEMA public RENAME TO {_ASIDE}; CREATE SCHEMA public")
        try:
            yield
        except BaseException:
            connection.execute(f"DROP SCHEMA public CASCADE; ALTER SCHEMA {_ASIDE} RENAME TO public")
            raise
        connection.execute(f"DROP SCHEMA {_ASIDE} CASCADE")


def _connected(url: str, *, autocommit: bool = False) -> psycopg.Connection:
    """A connection. Raises LaunchRefused if the database does not answer."""
    try:
        return psycopg.connect(url, connect_timeout=5, autocommit=autocommit)
    except psycopg.Error as error:
        raise LaunchRefused(
            f"The database does not answer: {str(error).strip()}. Start Hekla, or its PostgreSQL, and try again."
        ) from None


def _run(program: str, url: str, *arguments: str) -> None:
    """Run a program on the database. Raises LaunchRefused.

    The password is in the environment, because other users can see the arguments of a process.
    """
    place, password = _without_password(url)
    secrets = {"PGPASSWORD": password} if password else {}
    argv: Sequence[str | Path] = [postgres_programs() / program, f"--dbname={place}", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=_environment() | secrets)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise LaunchRefused(f"{program} says: {lines[-1] if lines else f'exit code {done.returncode}'}")


def _without_password(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    if parts.password is None:
        return url, ""
    place = parts.netloc.replace(f":{parts.password}@", "@", 1)
    return urlunsplit(parts._replace(netloc=place)), unquote(parts.password)


def _environment() -> dict[str, str]:
    inherited = {
        name: os.environ[name] for name in ("PATH", "TMPDIR", "PGSSLROOTCERT", "PGSSLMODE") if name in os.environ
    }
    return inherited | {"LC_ALL": "C", "TZ": "UTC"}
