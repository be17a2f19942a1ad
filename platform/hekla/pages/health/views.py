"""Whether this process lives, and whether it should be sent requests: for proxies, supervisors and Kubernetes.

A process lives as long as it answers, whatever became of the database: to restart it would mend nothing. It is ready
while the database answers and has the tables that this code wants. Messages only wake: that they cannot be sent is
told, and keeps nobody away.
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
_once_complete: set[str] = set()  # the tables that this code wants are not taken away while it runs


@login_not_required
@require_safe
def live(_request: HttpRequest) -> HttpResponse:
    """This process answers."""
    return HttpResponse("ok", content_type="text/plain")


@login_not_required
@require_safe
def health(_request: HttpRequest) -> HttpResponse:
    """This process answers, and its database does."""
    found = _database()
    return HttpResponse(found or "ok", status=_UNAVAILABLE if found else 200, content_type="text/plain")


@login_not_required
@require_safe
def ready(_request: HttpRequest) -> HttpResponse:
    """A line for each thing that this process needs: `ok`, or what is wrong with it."""
    needed = {"database": _database(), "tables": _tables()}
    lines = [f"{name}: {wrong or 'ok'}\n" for name, wrong in {**needed, "messages": _messages()}.items()]
    return HttpResponse("".join(lines), status=_UNAVAILABLE if any(needed.values()) else 200, content_type="text/plain")


def _database() -> str:
    return _wrong("no database", lambda probe: probe.cursor().execute("SELECT 1"))


def _tables() -> str:
    """That there are more changes than this code knows is well: they were made for the next version."""
    if connection.alias in _once_complete:
        return ""

    def look(probe: BaseDatabaseWrapper) -> None:
        executor = MigrationExecutor(probe)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise DatabaseError("changes are missing")
        _once_complete.add(connection.alias)

    return _wrong("not as this version wants them: run `python3 manage.py migrate`", look)


def _messages() -> str:
    return "" if wake.is_reachable() else "no Valkey; pages look each second by themselves"


def _wrong(sentence: str, look: Callable[[BaseDatabaseWrapper], object]) -> str:
    try:
        with _probe() as probe:
            look(probe)
    except (DatabaseError, InterfaceError):  # the latter where the connection is closed already
        return sentence
    return ""


@contextmanager
def _probe() -> Iterator[BaseDatabaseWrapper]:
    """A connection beside the pool: while many requests wait for the pool's, this process is still well."""
    if "pool" not in connection.settings_dict["OPTIONS"]:
        yield connection
        return
    probe = connection.copy()
    del probe.settings_dict["OPTIONS"]["pool"]
    try:
        yield probe
    finally:
        probe.close()
