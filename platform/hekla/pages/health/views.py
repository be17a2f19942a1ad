"""Liveness and readiness of this process, for proxies, supervisors and Kubernetes.

The process is live as long as it answers, whatever the state of the database, because a restart would not repair that.
It is ready if the database answers and has this version's tables. Valkey messages only wake pages early: if Valkey is
unreachable, `ready` reports it, but the process stays ready.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, InterfaceError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from hekla.live import wake

_UNAVAILABLE = 503
_once_complete: set[str] = set()  # complete tables are not removed while the process runs


@login_not_required
@require_safe
def live(_request: HttpRequest) -> HttpResponse:
    """200 if this process answers."""
    return HttpResponse("ok", content_type="text/plain")


@login_not_required
@require_safe
def health(_request: HttpRequest) -> HttpResponse:
    """200 if the database answers, else 503."""
    found = _database()
    return HttpResponse(found or "ok", status=_UNAVAILABLE if found else 200, content_type="text/plain")


@login_not_required
@require_safe
def ready(_request: HttpRequest) -> HttpResponse:
    """A line for each dependency: `ok`, or the problem. 503 if the database or its tables are not ready."""
    needed = {"database": _database(), "tables": _tables()}
    lines = [f"{name}: {wrong or 'ok'}\n" for name, wrong in {**needed, "messages": _messages()}.items()]
    return HttpResponse("".join(lines), status=_UNAVAILABLE if any(needed.values()) else 200, content_type="text/plain")


def _database() -> str:
    return _wrong("no database", lambda probe: probe.cursor().execute("SELECT 1"))


def _tables() -> str:
    """Empty if all migrations of this code have run. Unknown newer migrations are allowed: they belong to the next
    version.
    """
    if connection.alias in _once_complete:
        return ""

    def look(probe: BaseDatabaseWrapper) -> None:
        executor = MigrationExecutor(probe)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise DatabaseError("migrations are missing")
        _once_complete.add(connection.alias)

    return _wrong("not up to date: run `python3 manage.py migrate`", look)


def _messages() -> str:
    return "" if wake.is_reachable() else "no Valkey; pages check for changes every second"


def _wrong(sentence: str, look: Callable[[BaseDatabaseWrapper], object]) -> str:
    try:
        with _probe() as probe:
            look(probe)
    except (DatabaseError, InterfaceError):  # InterfaceError if the connection is already closed
        return sentence
    return ""


@contextmanager
def _probe() -> Iterator[BaseDatabaseWrapper]:
    """A connection outside the pool: if requests exhaust the pool, the process is still healthy."""
    if "pool" not in connection.settings_dict["OPTIONS"]:
        yield connection
        return
    probe = connection.copy()
    del probe.settings_dict["OPTIONS"]["pool"]
    try:
        yield probe
    finally:
        probe.close()
