"""Liveness and readiness of this process, for proxies, supervisors and Kubernetes.

The process is live as long as it answers, whatever the state of the database, because a restart would not repair that.
It is ready if the database answers and has this version's tables. Valkey messages only wake pages early: if Valkey is
unreachable, `readyz` reports it, but the process stays ready. The same holds for a controller that hangs: jobs do not
start, but pages work.

The checks run before Django, in a thread and on a connection of their own: requests of people that occupy all others
must not fail them. Concurrent checks share one run, so many of them cost no more than one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from django.db import DatabaseError, InterfaceError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.leases import SILENT_AFTER
from hekla.live import wake

HealthAnswer = tuple[HTTPStatus, str]
_CHECK_SECONDS = 5.0
_NO_DATABASE = "no database"
_once_complete: set[str] = set()  # complete tables are not removed while the process runs


class HealthChecks:
    """An ASGI application in front of Django: answers `/livez`, `/healthz` and `/readyz`."""

    def __init__(self, application: Callable[..., Awaitable[None]]) -> None:
        self._application = application
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._running: dict[str, asyncio.Future[HealthAnswer]] = {}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401
        """Answer a check; pass other requests on."""
        path = scope["path"]
        if path not in {"/livez", *_CHECKS}:
            await self._application(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await _send(send, HTTPStatus.METHOD_NOT_ALLOWED, "")
        else:
            status, text = (HTTPStatus.OK, "ok") if path == "/livez" else await self._check(path)
            await _send(send, status, "" if scope["method"] == "HEAD" else text)

    async def _check(self, path: str) -> HealthAnswer:
        running = self._running.get(path)
        if running is None or running.done():
            loop = asyncio.get_running_loop()
            running = self._running[path] = loop.run_in_executor(self._thread, _CHECKS[path])
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                return await asyncio.shield(running)
        except TimeoutError:
            return HTTPStatus.SERVICE_UNAVAILABLE, f"database: {_NO_DATABASE}\n"


def health() -> HealthAnswer:
    """200 if the database answers, else 503."""
    problem = _database()
    return _status(problem), problem or "ok"


def ready() -> HealthAnswer:
    """A line for each dependency: `ok`, or the problem. 503 if the database or its tables are not ready."""
    needed = {"database": _database(), "tables": _tables()}
    reported = {"messages": _messages(), "controllers": _controllers()}
    lines = [f"{name}: {problem or 'ok'}\n" for name, problem in {**needed, **reported}.items()]
    return _status(*needed.values()), "".join(lines)


_CHECKS: dict[str, Callable[[], HealthAnswer]] = {"/healthz": health, "/readyz": ready}


def _status(*problems: str) -> HTTPStatus:
    return HTTPStatus.SERVICE_UNAVAILABLE if any(problems) else HTTPStatus.OK


def _database() -> str:
    return _problem(_NO_DATABASE, lambda probe: probe.cursor().execute("SELECT 1"))


def _tables() -> str:
    """Empty if all migrations of this code have run. Unknown newer migrations are allowed: they belong to the next
    version.
    """
    if connection.alias in _once_complete:
        return ""

    def look(probe: BaseDatabaseWrapper) -> None:
        # Not with Django's recorder: it reads on the connection of the thread, which comes from the pool.
        with probe.cursor() as cursor:
            cursor.execute("SELECT app, name FROM django_migrations")
            applied = set(cursor.fetchall())
        if not applied.issuperset(MigrationLoader(None).graph.nodes):
            raise DatabaseError("migrations are missing")
        _once_complete.add(connection.alias)

    return _problem("not up to date: run `python3 manage.py migrate`", look)


def _messages() -> str:
    return "" if wake.is_reachable() else "no Valkey; pages check for changes every second"


def _controllers() -> str:
    """Empty if each cluster has a controller that works."""
    silent: list[str] = []

    def look(probe: BaseDatabaseWrapper) -> None:
        names = clusters.silent().values_list("name")
        silent.extend(str(row[0]) for row in names.query.get_compiler(connection=probe).results_iter())

    if problem := _problem("unknown", look):
        return problem
    seconds = int(SILENT_AFTER.total_seconds())
    return f"no cycle for {seconds} s or longer on {len(silent)} of the clusters" if silent else ""


def _problem(sentence: str, look: Callable[[BaseDatabaseWrapper], object]) -> str:
    try:
        with _probe() as probe:
            look(probe)
    except (DatabaseError, InterfaceError):  # InterfaceError if the connection is already closed
        return sentence
    return ""


@contextmanager
def _probe() -> Iterator[BaseDatabaseWrapper]:
    """A connection outside the pool: if requests exhaust the pool, the process is still healthy."""
    probe = connection.copy()
    probe.settings_dict["OPTIONS"].pop("pool", None)
    try:
        yield probe
    finally:
        probe.close()


async def _send(send: Any, status: HTTPStatus, text: str) -> None:  # noqa: ANN401  (an ASGI function)
    body = text.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": body})
