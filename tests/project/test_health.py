"""The endpoints for liveness and readiness, also without a database or Valkey."""

import pytest
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from redis.exceptions import RedisError

from hekla.live import wake
from hekla.pages.health import views

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forget_checked_tables(monkeypatch) -> None:
    monkeypatch.setattr(views, "_once_complete", set())


def get(path: str) -> tuple[int, str]:
    response = Client().get(path)
    return response.status_code, response.content.decode()


def _no_database(*_arguments: object) -> None:
    raise DatabaseError("away")


def _closed(*_arguments: object) -> None:
    raise InterfaceError("the connection is closed")


def test_healthy_process() -> None:
    assert get("/livez") == get("/healthz") == (200, "ok")
    assert get("/readyz") == (200, "database: ok\ntables: ok\nmessages: ok\n")


@pytest.mark.parametrize("failure", [_no_database, _closed])
def test_process_without_a_database_is_alive_but_not_ready(failure) -> None:
    with connection.execute_wrapper(failure):
        assert get("/livez") == (200, "ok")
        assert get("/healthz")[0] == 503
        status, body = get("/readyz")
    assert status == 503
    assert body.startswith("database: no database\n")


def test_process_with_missing_migrations_is_not_ready() -> None:
    MigrationRecorder.Migration.objects.filter(app="jobs").order_by("-id").first().delete()
    status, body = get("/readyz")
    assert status == 503
    assert "manage.py migrate" in body


def test_newer_tables_do_not_matter() -> None:
    MigrationRecorder(connection).record_applied("jobs", "9999_of_tomorrow")
    assert get("/readyz")[0] == 200


def test_tables_are_checked_only_until_they_are_complete(django_assert_num_queries) -> None:
    get("/readyz")
    with django_assert_num_queries(1):
        get("/readyz")


def test_process_without_valkey_is_ready_and_reports_it(monkeypatch) -> None:
    class UnreachableValkey:
        def ping(self) -> None:
            raise RedisError("away")

    monkeypatch.setattr(wake, "_valkey", UnreachableValkey)
    status, body = get("/readyz")
    assert status == 200
    assert "messages: no Valkey" in body
