"""A pytest plugin: makes steps cheap that thousands of tests repeat."""

import gc
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import Any

import pytest
from asgiref.sync import async_to_sync, iscoroutinefunction, sync_to_async
from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.core.servers.basehttp import ThreadedWSGIServer
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template import RequestContext, Template
from django.template.context import Context
from django.test import TransactionTestCase
from django.test.signals import template_rendered
from django.utils.decorators import sync_and_async_middleware
from servestatic import middleware as static_files
from servestatic.middleware import ServeStaticMiddleware

_LEAST = {"time_cost": 1, "memory_cost": 8, "parallelism": 1}
_ALLOCATIONS, _YOUNG, _OLD = 20_000, 20, 100
_MADE_BY_MIGRATIONS = {"django_migrations", "django_content_type", "auth_permission"}
_deleting: dict[str, object] = {}
"""The connection that has the function which deletes rows."""
_idle: list[BaseDatabaseWrapper] = []
"""Connections of ended threads of the live server."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects no garbage meanwhile: nearly all objects stay, and to scan them takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Excludes the collected tests from garbage collection; to scan them takes a tenth of the time, even once 3 s."""
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, _YOUNG, _OLD)


@pytest.fixture(scope="session", autouse=True)
def economy(django_test_environment: None) -> Iterator[None]:
    """Serves static files cheaply, hashes passwords at the lowest cost, deletes rows instead of truncating tables.

    Connections stay open from test to test, and from thread to thread of the live server: each new one reads the
    catalogue of all tables again. Its patch of templates comes after Django's own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServeStaticMiddleware, "add_files_from_finders", _once(ServeStaticMiddleware))
        patch.setattr(static_files, ServeStaticMiddleware.__name__, _static_files)
        for name, value in _LEAST.items():
            patch.setattr(Argon2PasswordHasher, name, value)
        patch.setattr(TransactionTestCase, "_fixture_teardown", _delete_rows)
        patch.setattr(TransactionTestCase, "_should_reload_connections", lambda _case: False)
        patch.setattr(Template, "_render", _render)
        patch.setattr(ThreadedWSGIServer, "process_request_thread", _with_idle_connection)
        patch.setattr(ThreadedWSGIServer, "_close_connections", lambda _server: _keep_connection())
        yield


def end_idle_connections() -> None:
    """Ends those that the live server kept, before the database ends."""
    while _idle:
        wrapper = _idle.pop()
        wrapper._thread_ident = get_ident()
        wrapper.close()


_serve_request = ThreadedWSGIServer.process_request_thread


def _with_idle_connection(server: ThreadedWSGIServer, request: Any, address: Any) -> None:
    """Serves a client in this thread with the connection of an earlier one, if there is any."""
    with suppress(IndexError):
        connections["default"] = wrapper = _idle.pop()
        wrapper._thread_ident = get_ident()
    _serve_request(server, request, address)


def _keep_connection() -> None:
    """Keeps the connection of this thread for others. One with an open transaction ends."""
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is None or wrapper.in_atomic_block or wrapper.errors_occurred:
            wrapper.close()
            continue
        del connections[wrapper.alias]
        _idle.append(wrapper)


@contextmanager
def contexts_only() -> Iterator[None]:
    """Pages have a context, but no text meanwhile: for steps of a test that read forms in it. Most time is the text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Template, "_render", _record)
        yield


def _render(template: Template, context: Context) -> str:
    _record(template, context)
    rendered: str = template.nodelist.render(context)
    return rendered


def _record(template: Template, context: Context) -> str:
    """Records the context of a page. Django also copies that of each included template, a hundred times a page."""
    if isinstance(context, RequestContext) and context.template is template:
        template_rendered.send(sender=template, template=template, context=context)
    return ""


@sync_and_async_middleware
def _static_files(get_response: Any) -> Callable[[HttpRequest], Any]:
    """The middleware of static files. A synchronous client enters it, and an event loop, only for such files."""
    if iscoroutinefunction(get_response):
        return ServeStaticMiddleware(get_response)
    serve = async_to_sync(ServeStaticMiddleware(sync_to_async(get_response)))

    def respond(request: HttpRequest) -> HttpResponseBase:
        is_static = request.path_info.startswith(settings.SERVESTATIC_STATIC_PREFIX)
        response: HttpResponseBase = serve(request) if is_static else get_response(request)
        return response

    return respond


def _once(kind: type[ServeStaticMiddleware]) -> Any:
    """Finds the files only the first time: every test client creates a middleware, which searches for them."""
    look, found = kind.add_files_from_finders, dict[str, Any]()

    def look_once(middleware: ServeStaticMiddleware) -> None:
        if not found:
            look(middleware)
            found.update(files=middleware.files, directories=middleware.directories)
        middleware.files, middleware.directories = dict(found["files"]), list(found["directories"])

    return look_once


def _delete_rows(_case: TransactionTestCase) -> None:
    """Deletes rows. Django truncates all tables and recreates the rows of migrations, which takes half a second.

    A function of the connection does it: PostgreSQL plans its 70 statements once.
    """
    connection.close_if_unusable_or_obsolete()
    with transaction.atomic(), connection.cursor() as cursor:
        if _deleting.get("from") is not connection.connection:
            cursor.execute(
                f"CREATE FUNCTION pg_temp.delete_rows() RETURNS void LANGUAGE plpgsql AS $$BEGIN {_deletes()} END$$"
            )
        cursor.execute("SELECT pg_temp.delete_rows()")
    _deleting["from"] = connection.connection


def _deletes() -> str:
    """A statement for each table that has no rows of migrations."""
    tables = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
    names = [connection.ops.quote_name(table) for table in sorted(tables - _MADE_BY_MIGRATIONS)]
    return " ".join(f"DELETE FROM {name};" for name in names)  # noqa: S608  (names of tables cannot be parameters)
