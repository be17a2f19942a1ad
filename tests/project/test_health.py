"""The endpoints for liveness and readiness, also without a database or Valkey."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from asgiref.testing import ApplicationCommunicator
from django.db import DatabaseError, InterfaceError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from redis.exceptions import RedisError

from hekla.apps.clusters import leases
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, Lease
from hekla.apps.event_log.services import PLATFORM
from hekla.lib import clock
from hekla.live import wake
from hekla.pages.health import checks

pytestmark = pytest.mark.django_db(transaction=True)  # the checks have a connection of their own


@pytest.fixture(autouse=True)
def _forget_checked_tables(monkeypatch) -> None:
    monkeypatch.setattr(checks, "_once_complete", set())


async def _django(_scope: object, _receive: object, _send: object) -> None:
    raise AssertionError("a check reached Django")


def get(path: str, method: str = "GET") -> tuple[int, str]:
    async def ask() -> tuple[int, str]:
        scope = {"type": "http", "method": method, "path": path, "headers": []}
        communicator = ApplicationCommunicator(checks.HealthChecks(_django), scope)
        start = await communicator.receive_output(10)
        body = await communicator.receive_output(10)
        return start["status"], body["body"].decode()

    return asyncio.run(ask())


def failing(error: type[Exception]):
    @contextmanager
    def probe() -> Iterator[BaseDatabaseWrapper]:
        raise error("away")
        yield connection

    return probe


def test_healthy_process() -> None:
    assert get("/livez") == get("/healthz") == (200, "ok")
    assert get("/readyz") == (200, "database: ok\ntables: ok\nmessages: ok\ncontrollers: ok\n")


def test_checks_only_read() -> None:
    assert get("/readyz", "HEAD") == (200, "")
    assert get("/readyz", "POST") == (405, "")


@pytest.mark.parametrize("error", [DatabaseError, InterfaceError])
def test_process_without_a_database_is_alive_but_not_ready(monkeypatch, error) -> None:
    monkeypatch.setattr(checks, "_probe", failing(error))
    assert get("/livez") == (200, "ok")
    assert get("/healthz")[0] == 503
    status, body = get("/readyz")
    assert status == 503
    assert body.startswith("database: no database\n")


def test_process_with_missing_migrations_is_not_ready() -> None:
    last = MigrationRecorder.Migration.objects.filter(app="jobs").order_by("-id").first()
    last.delete()
    try:
        status, body = get("/readyz")
    finally:
        MigrationRecorder(connection).record_applied(last.app, last.name)
    assert status == 503
    assert "manage.py migrate" in body


def test_newer_tables_do_not_matter() -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("jobs", "9999_of_tomorrow")
    try:
        assert get("/readyz")[0] == 200
    finally:
        recorder.record_unapplied("jobs", "9999_of_tomorrow")


def test_tables_are_checked_only_until_they_are_complete(monkeypatch) -> None:
    get("/readyz")

    def never(*_arguments: object) -> None:
        raise AssertionError("the tables were checked again")

    monkeypatch.setattr(checks, "MigrationLoader", never)
    assert get("/readyz")[0] == 200


def test_controller_that_hangs_is_reported_and_the_process_stays_ready() -> None:
    now = clock.now()
    cluster = clusters.create(name="sim", kind="simulated", config={}, actor=PLATFORM, now=now)
    leases.take(cluster, "one", now=now)
    assert "controllers: ok\n" in get("/readyz")[1]
    Lease.objects.update(expires_at=now - timedelta(seconds=90))
    status, body = get("/readyz")
    assert status == 200
    assert "controllers: no cycle for 60 s or longer on 1 of the clusters\n" in body
    Cluster.objects.update(is_paused=True)
    assert "controllers: ok\n" in get("/readyz")[1]


def test_process_without_valkey_is_ready_and_reports_it(monkeypatch) -> None:
    class UnreachableValkey:
        def ping(self) -> None:
            raise RedisError("away")

    monkeypatch.setattr(wake, "_valkey", UnreachableValkey)
    status, body = get("/readyz")
    assert status == 200
    assert "messages: no Valkey" in body
