"""Who asks whether a process lives, or is ready, is told so also where something is away."""

import pytest
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from redis.exceptions import RedisError

from hekla.live import wake
from hekla.pages.health import views

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _afresh(monkeypatch) -> None:
    monkeypatch.setattr(views, "_once_complete", set())


def asked(path: str) -> tuple[int, str]:
    answer = Client().get(path)
    return answer.status_code, answer.content.decode()


def _no_database(*_arguments: object) -> None:
    raise DatabaseError("away")


def _closed(*_arguments: object) -> None:
    raise InterfaceError("the connection is closed")


def test_all_is_well() -> None:
    assert asked("/livez") == asked("/healthz") == (200, "ok")
    assert asked("/readyz") == (200, "database: ok\ntables: ok\nmessages: ok\n")


@pytest.mark.parametrize("away", [_no_database, _closed])
def test_without_a_database_a_process_lives_and_is_not_ready(away) -> None:
    with connection.execute_wrapper(away):
        assert asked("/livez") == (200, "ok")
        assert asked("/healthz")[0] == 503
        status, told = asked("/readyz")
    assert status == 503
    assert told.startswith("database: no database\n")


def test_before_the_tables_are_as_wanted_nobody_is_sent_here() -> None:
    MigrationRecorder.Migration.objects.filter(app="jobs").order_by("-id").first().delete()
    status, told = asked("/readyz")
    assert status == 503
    assert "manage.py migrate" in told


def test_tables_of_the_next_version_do_not_matter() -> None:
    MigrationRecorder(connection).record_applied("jobs", "9999_of_tomorrow")
    assert asked("/readyz")[0] == 200


def test_once_the_tables_are_there_nobody_looks_again(django_assert_num_queries) -> None:
    asked("/readyz")
    with django_assert_num_queries(1):
        asked("/readyz")


def test_without_messages_a_process_is_ready_and_says_so(monkeypatch) -> None:
    class Away:
        def ping(self) -> None:
            raise RedisError("away")

    monkeypatch.setattr(wake, "_valkey", Away)
    status, told = asked("/readyz")
    assert status == 200
    assert "messages: no Valkey" in told
