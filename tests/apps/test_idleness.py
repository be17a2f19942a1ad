"""Idle sessions: the record, the rules, the warning, the end, and the wish to keep one."""

import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.audit.sentences import sentence
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.idleness import recording, selectors, services
from hekla.apps.idleness.models import SessionMinute
from hekla.apps.idleness.recording import Measured
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.labels import sentence as notice
from hekla.apps.notifications.models import Notification
from hekla.apps.usage.models import Sample
from hekla.apps.workbench.models import ToolSession
from hekla.domain.errors import Forbidden, Invalid, Refused
from hekla.domain.idleness import IdleStep, KeepCause, Signal
from hekla.lib import clock
from hekla.workbench import idling

__all__ = ["db", "people", "shared_people"]
MINUTE = timedelta(minutes=1)
RULE = {"ends_sessions": True, "idle_minutes": 10, "grace_minutes": 5, "cpu_percent": None, "gpu_percent": None}


@pytest.fixture
def begin() -> datetime:
    return recording.minute_of(clock.now()) - timedelta(hours=1)


@pytest.fixture
def session(people: Any, begin: datetime) -> ToolSession:
    """Alice's session with a port of a running pod."""
    Cluster.objects.update(kind="local")
    job = people.submit("served")
    facts = {"job": job, "task": "main", "index": 0, "version": 1, "slot": 1, "created_at": begin, "phase": "running"}
    pod = Pod.objects.create(**facts, attempt=1, address="127.0.0.1")
    made = {"created_at": begin, "ready_at": begin, "tool": "port", "port": 8080}
    return ToolSession.objects.create(slug="a" * 26, pod=pod, owner=people.alice, **made)


def watch(begin: datetime, first: int, last: int) -> None:
    """The watch, once in each of these minutes."""
    for minute in range(first, last + 1):
        idling.watch(now=begin + minute * MINUTE)


def test_session_ends_by_the_choice_of_its_job(people: Any, session: ToolSession, begin: datetime) -> None:
    services.set_rule(people.lab, {**RULE, "idle_minutes": 60}, user=people.alice, now=begin)
    job = session.pod.job
    Job.objects.filter(pk=job.pk).update(spec={**job.spec, "idle_after_seconds": 600})
    watch(begin, 0, 18)
    session.refresh_from_db()
    assert session.end_reason == "idle"


def test_minutes_are_locked_in_the_order_of_all_writers(session: ToolSession, begin: datetime) -> None:
    """Whatever the plan: each writer of several minutes locks them by session, so no two wait for each other."""
    facts = {"sessions": [session.pk], "before": begin, "kernels": [1], "cpus": [1], "gpus": [1]}
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off")
        cursor.execute(f"EXPLAIN (COSTS OFF) {recording._MEASURE_BEFORE}", facts)
        plan = " ".join(line.strip() for (line,) in cursor.fetchall())
    assert re.search(r"LockRows\s+->\s+Sort Sort Key: idleness_sessionminute.session_id", plan), plan


def kinds() -> list[str]:
    return [event.kind for event in LoggedEvent.objects.filter(kind__startswith="Session").order_by("pk")]


def test_idle_session_is_warned_then_ends_with_the_evidence(
    people: Any, session: ToolSession, begin: datetime, settings: Any
) -> None:
    settings.MAIL_IS_SET_UP = True
    notifications.follow(now=begin)
    watch(begin, 0, 3)
    services.set_rule(people.lab, RULE, user=people.alice, now=begin)
    recording.count({(session.pk, begin + 2 * MINUTE): Counter({Signal.REQUESTS: 3})}, {})
    watch(begin, 4, 12)
    found = selectors.activity_of(session, now=begin + 12 * MINUTE)
    assert (found.verdict.step, found.verdict.cause, found.verdict.signal) == (
        "keep",
        KeepCause.SIGNAL,
        Signal.REQUESTS,
    )
    assert found.verdict.next_at == begin + 13 * MINUTE
    assert selectors.quiet([session], now=begin + 12 * MINUTE) == []  # used within the idle time: no whole record
    assert selectors.quiet([session], now=begin + 13 * MINUTE) == [session]
    watch(begin, 13, 17)
    assert kinds() == ["SessionIdleWarned"]
    notifications.follow(now=begin + 14 * MINUTE)
    warned = Notification.objects.get(user=people.alice)
    assert notice(warned).startswith("Your session with a port in served is idle. Unless you use it, it ends at ")
    assert warned.page == reverse("workbench:activity", args=[session.uid])
    assert selectors.activity_of(session, now=begin + 17 * MINUTE).verdict.step is IdleStep.WAIT
    watch(begin, 18, 20)
    session.refresh_from_db()
    assert (session.end_reason, session.ended_at) == ("idle", begin + 19 * MINUTE)
    assert kinds() == ["SessionIdleWarned", "SessionEnded"]
    ended = LoggedEvent.objects.get(kind="SessionEnded")
    assert sentence(ended, "served").text == (
        "platform ended the session of alice with pod main-0 of served: it was idle."
    )
    signals = {one["signal"]: one for one in ended.payload["evidence"]}
    assert signals["requests"]["active_at"] == (begin + 3 * MINUTE).isoformat()
    assert signals["cpu"]["limit"] is None
    assert recording.purge(now=clock.now() + timedelta(days=9)) == 20


def test_activity_after_the_warning_keeps_the_session(people: Any, session: ToolSession, begin: datetime) -> None:
    services.set_rule(None, RULE, user=people.ada, now=begin)
    watch(begin, 0, 12)
    assert kinds() == ["SessionIdleWarned"]
    recording.count({}, {(session.pod_id, people.alice.pk, begin + 13 * MINUTE): Counter({Signal.TERMINAL: 5})})
    watch(begin, 13, 23)
    assert kinds() == ["SessionIdleWarned"]  # the old warning is void
    watch(begin, 24, 29)
    assert kinds() == ["SessionIdleWarned", "SessionIdleWarned"]  # and the grace time begins anew


def test_unknown_cpu_and_a_gap_never_end_a_session_and_a_busy_pod_neither(
    people: Any, session: ToolSession, begin: datetime
) -> None:
    services.set_rule(None, {**RULE, "cpu_percent": 20}, user=people.ada, now=begin)
    watch(begin, 0, 20)  # no samples
    found = selectors.activity_of(session, now=begin + 20 * MINUTE).verdict
    assert (found.step, found.cause, found.signal) == (IdleStep.KEEP, KeepCause.UNKNOWN, Signal.CPU)
    facts = {"pod": session.pod, "memory_bytes": 1, "span_seconds": 10}
    for second in range(0, 20 * 60, 10):  # half of a core
        at = begin + 20 * MINUTE + timedelta(seconds=second)
        Sample.objects.create(**facts, at=at, cpu_ms=second * 500)
    watch(begin, 21, 39)
    found = selectors.activity_of(session, now=begin + 39 * MINUTE).verdict
    assert (found.step, found.cause, found.signal) == (IdleStep.KEEP, KeepCause.SIGNAL, Signal.CPU)
    services.set_rule(None, {"cpu_percent": 60}, user=people.ada, now=begin)
    assert selectors.activity_of(session, now=begin + 39 * MINUTE).verdict.step is IdleStep.WARN
    later = selectors.activity_of(session, now=begin + 59 * MINUTE).verdict  # nobody watched meanwhile
    assert (later.step, later.cause) == (IdleStep.KEEP, KeepCause.GAP)
    assert kinds() == []


def test_rule_is_off_by_default_and_of_two_the_stricter_counts(people: Any, session: ToolSession) -> None:
    assert selectors.rules_of([people.lab.pk]) == {people.lab.pk: None}
    services.set_rule(people.lab, RULE, user=people.alice, now=clock.now())
    strict = {"ends_sessions": True, "idle_minutes": 30, "grace_minutes": 5, "cpu_percent": 20}
    services.set_rule(None, strict, user=people.ada, now=clock.now())
    rule = selectors.rules_of([people.lab.pk])[people.lab.pk]
    assert (rule.idle, rule.grace, dict(rule.limits)) == (10 * MINUTE, 5 * MINUTE, {})
    for user, tenant in ((people.bob, people.lab), (people.alice, None), (people.alice, people.other)):
        with pytest.raises(Forbidden):
            services.set_rule(tenant, RULE, user=user, now=clock.now())
    with pytest.raises(Invalid) as wrong:
        services.set_rule(None, {"idle_minutes": 1, "grace_minutes": 10**6}, user=people.ada, now=clock.now())
    assert {problem.path for problem in wrong.value.problems} == {"idle_minutes", "grace_minutes"}
    with pytest.raises(Invalid):
        services.set_rule(None, {"gpu_job_minutes": 60, "gpu_percent": None}, user=people.ada, now=clock.now())


def test_amounts_are_added_and_measurements_are_the_highest(people: Any, session: ToolSession, begin: datetime) -> None:
    for amount in (2, 3):
        recording.count(
            {(session.pk, begin): Counter({Signal.REQUESTS: amount, Signal.NETWORK: 1024})},
            {(session.pod_id, people.alice.pk, begin): Counter({Signal.SSH: amount})},
        )
    recording.count({}, {(session.pod_id, people.bob.pk, begin): Counter({Signal.SSH: 100})})
    for kernel, cpu in ((None, 7), (1, 3), (0, None)):
        recording.measure([Measured(session.pk, kernel, cpu, None)], now=begin)
    row = SessionMinute.objects.get()
    assert (row.requests, row.ssh, row.network_bytes, row.kernel, row.cpu, row.gpu) == (5, 5, 2048, 1, 7, None)
    recording.count({(session.pk, begin + MINUTE): Counter({Signal.NETWORK: 1})}, {})  # a tab polls, nobody measures
    recording.measure([Measured(session.pk, 0, 4, None)], now=begin + 2 * MINUTE)
    measured = SessionMinute.objects.order_by("at").values_list("kernel", "cpu")
    assert list(measured) == [(1, 7), (0, 4), (0, 4)]
    ToolSession.objects.update(ended_at=clock.now())
    recording.count({(session.pk, begin): Counter({Signal.REQUESTS: 1})}, {})
    assert SessionMinute.objects.get(at=begin).requests == 5


def test_page_shows_each_signal_and_keeps_the_session_once(
    people: Any, session: ToolSession, begin: datetime, as_: Callable[[Any], Client]
) -> None:
    alice, page = as_(people.alice), reverse("workbench:activity", args=[session.uid])
    assert "no idle rule is on" in alice.get(page).content.decode()
    now = recording.minute_of(clock.now())
    services.set_rule(None, {**RULE, "idle_minutes": 30}, user=people.ada, now=now)
    for minute in range(61):
        recording.measure([Measured(session.pk, None, 3, None)], now=begin + minute * MINUTE)
    page_text = alice.get(page).content.decode()
    assert "This session is idle." in page_text
    assert "does not count" in page_text
    keep = reverse("workbench:keep", args=[session.uid])
    refused = alice.post(keep, {"hours": "99", "reason": "It waits for data."}).content.decode()
    assert "It waits for data." in refused
    assert alice.post(keep, {"hours": "2", "reason": "It waits for data."}).status_code == 302
    page_text = alice.get(page, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in page_text
    assert "It waits for data." in page_text
    with pytest.raises(Refused):
        services.keep(session, hours=1, reason="again", user=people.alice, now=clock.now())
    found = alice.get(reverse("api:v1:job_session_activity", args=[session.pod.job.uid, session.uid])).json()
    assert (found["step"], found["keep_reason"], found["has_rule"]) == ("keep", "It waits for data.", True)
    assert {one["signal"]: one["most"] for one in found["signals"]}["cpu"] == 3
    event = LoggedEvent.objects.get(kind="SessionKeepRequested")
    text = sentence(event, "served").text
    assert text == "alice keeps a session with pod main-0 of served open. Reason: It waits for data."
    assert as_(people.bob).get(page).status_code == 403
    assert as_(people.charlie).get(page).status_code == 404


def test_rules_are_set_on_pages_and_by_rest(people: Any, as_: Callable[[Any], Client]) -> None:
    page = reverse("idleness:tenant", args=["lab"])
    alice = as_(people.alice)
    assert "It is off." in alice.get(page).content.decode()
    form = {"ends_sessions": "on", "idle_minutes": "45", "grace_minutes": "15", "cpu_percent": "", "gpu_percent": "5"}
    assert alice.post(page, form).status_code == 302
    stored = alice.get(reverse("api:v1:tenant_idle_rule", args=["lab"])).json()
    assert (stored["ends_sessions"], stored["idle_minutes"], stored["cpu_percent"]) == (True, 45, None)
    wrong = alice.post(page, {**form, "idle_minutes": "1"})
    assert (wrong.status_code, 'value="1"' in wrong.content.decode()) == (200, True)
    ada = as_(people.ada)
    changed = ada.patch(reverse("api:v1:idle_rule"), {"idle_minutes": 240}, content_type="application/json")
    assert (changed.status_code, changed.json()["idle_minutes"]) == (200, 240)
    assert ada.get(reverse("idleness:platform")).status_code == 200
    event = LoggedEvent.objects.filter(kind="IdlePolicyChanged").order_by("pk").last()
    assert (
        sentence(event, "the platform").text
        == "ada changed the idle rule of the platform: idle time in minutes from 120 to 240."
    )
