"""The state of the console itself: page, REST and what it counts."""

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from redis import Redis
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Lease
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.notifications.models import Delivery, Notification, NotificationCursor
from hekla.apps.system import database, messages
from hekla.apps.system.report import system_report
from hekla.domain.errors import Forbidden
from hekla.lib import clock
from hekla.pages.metrics import tasks

__all__ = ["db", "people", "shared_people"]


@pytest.fixture
def otto(people: People) -> User:
    facts: dict[str, Any] = {"password": None, "platform_role": "operator"}
    return accounts.create_user(username="otto", actor=PLATFORM, now=clock.now(), **facts)


@pytest.fixture
def valkey() -> Iterator[Redis]:
    """The Valkey of the tests, without messages."""
    keys = [*messages.QUEUES, messages._FAILURES]
    found = messages._valkey()
    found.delete(*keys)
    yield found
    found.delete(*keys)


def test_waiting_messages_and_failed_tasks(valkey: Redis) -> None:
    headers: dict[str, Any] = {}
    tasks.stamp(headers=headers)
    headers[messages.SENT_AT] -= 300
    valkey.rpush("control", "news", json.dumps({"headers": headers}))
    valkey.rpush("default", "no JSON")
    for place in range(messages._MOST_FAILURES + 5):
        tasks.remember(sender=None, exception=ValueError(f"no\x00 {place} " + "x" * 1000))
    tasks.remember(sender=None, exception=ValueError("twice\nDETAIL: Key (address)=(alice@lab.example)"))
    found = messages.broker_state()
    assert found.version
    assert found.memory_bytes > 2**18
    assert found.clients
    assert not found.problem
    by_name = {one.name: one for one in found.queues}
    assert (by_name["control"].length, by_name["default"].oldest_seconds) == (2, None)
    assert 300 <= (by_name["control"].oldest_seconds or 0) < 310
    assert len(found.failures) == messages._MOST_FAILURES
    assert found.failures[0].error == "ValueError: twice"
    assert found.failures[1].error.startswith("ValueError: no  54 x")
    assert len(found.failures[1].error) == 300


def test_valkey_that_does_not_answer_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_valkey", lambda: Redis(host="127.0.0.1", port=1, socket_connect_timeout=0.2))
    assert "ConnectionError" in messages.broker_state().problem
    messages.note_failure("hekla.turn", ValueError())


def test_report_equals_the_rows(people: People, otto: User, valkey: Redis) -> None:
    now, last = clock.now(), event_log.last_number()
    NotificationCursor.objects.update_or_create(pk=1, defaults={"number": last - 2})
    Lease.objects.update_or_create(
        cluster=people.cluster,
        defaults={"holder": "host:1", "epoch": 4, "expires_at": now + timedelta(minutes=5), "fault": "ValueError: no"},
    )
    notice = Notification.objects.create(user=people.alice, key="one", moment="failed", at=now)
    late = {"due_at": now - timedelta(minutes=10), "attempts": 3, "error": "the mail server refuses"}
    Delivery.objects.create(notification=notice, channel="mail", **late)
    found = system_report(otto, now=now)
    (controller,) = (one for one in found.controllers if one.cluster == people.cluster.name)
    assert (controller.holder, controller.epoch, controller.fault, controller.is_silent) == (
        "host:1", 4, "ValueError: no", False
    )  # fmt: skip
    readers = {one.name: one for one in found.readers}
    assert (readers["notifications"].behind, found.last_event) == (2, last)
    mails = next(one for one in found.outboxes if one.kind == "notification_mail")
    assert (mails.waiting, mails.overdue, mails.error) == (1, 1, "the mail server refuses")
    assert found.database.size_bytes > 2**20
    assert found.database.tables[0].size_bytes > 0
    with pytest.raises(Forbidden):
        system_report(people.ada if people.ada.platform_role == "" else people.alice, now=now)

    client = Client()
    client.force_login(otto, backend="django.contrib.auth.backends.ModelBackend")
    text = client.get(reverse("system:show")).content.decode()
    for words in ("ValueError: no", "the mail server refuses", "pg_stat_statements", "Deliveries are late", "host:1"):
        assert words in text
    document = client.get(reverse("api:v1:system")).json()
    assert document["controllers"][0]["is_silent"] in (False, True)
    assert document["database"]["version"] == found.database.version


def test_slow_statements_are_read_where_they_are_counted(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded PostgreSQL has no such extension: a table of this name stands in for its view."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMPORARY TABLE pg_stat_statements AS SELECT oid AS dbid, 'SELECT $1' AS query, 5::bigint AS calls,"
            " 2.5::float8 AS mean_exec_time, 12.5::float8 AS total_exec_time, 5::bigint AS rows FROM pg_database"
            " WHERE datname = current_database()"
        )
        cursor.execute(
            "INSERT INTO pg_stat_statements SELECT dbid, 'ALTER ROLE a PASSWORD ''x''', 1, 9, 9, 0"
            " FROM pg_stat_statements"
        )
        monkeypatch.setattr(database, "_HAS_STATEMENTS", "SELECT true")
        began = time.perf_counter()
        found = database.database_state().statements
        assert time.perf_counter() - began < 5
        cursor.execute("DROP TABLE pg_stat_statements")
        assert database.database_state().statements is None, "installed, but not where our role looks"
    assert found is not None
    assert [(one.text, one.calls, one.mean_ms) for one in found] == [("SELECT $1", 5, 2.5)]
