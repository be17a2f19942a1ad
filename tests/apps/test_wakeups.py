"""Wakeups of background tasks: soon enough, and not more often than necessary."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from hekla.apps import wakeups
from hekla.apps.demonstrations.wake import advancing as demonstrations
from hekla.apps.event_log.services import PLATFORM, record, unit_of_work
from hekla.apps.flows.wake import advancing as flows
from hekla.apps.invitations.wake import sending as letters
from hekla.apps.job_metrics.wake import following as metrics
from hekla.apps.notifications import wake as notifications
from hekla.apps.schedules.wake import starting as schedules
from hekla.apps.wakeups import HORIZON_SECONDS, Wakeup
from hekla.apps.workbench.wake import ending as sessions
from hekla.controller.tasks import moving
from hekla.domain import events

WAKEUPS = [demonstrations, flows, letters, metrics, moving, notifications.following, notifications.sending, schedules]
NOW = datetime(2026, 5, 1, tzinfo=UTC)


class Clock:
    """A clock in seconds for the wakeups, and the times at which tasks were requested."""

    def __init__(self) -> None:
        self.now = 100.0
        self.runs: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def send(self, _task: str, *, countdown: float | None, expires: float, **_options: Any) -> None:
        assert expires > (countdown or 0)
        self.runs.append(round(self.now + (countdown or 0), 3))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(wakeups, "time", clock)
    monkeypatch.setattr(wakeups.current_app, "send_task", clock.send)
    return clock


def test_first_call_is_immediate_and_last_call_is_not_lost(clock: Clock) -> None:
    wakeup = Wakeup("task", pause=1.0)
    for seconds in (0.0, 0.05, 0.5, 0.9):
        clock.now = 100.0 + seconds
        wakeup.soon()
    assert clock.runs == [100.0, 101.0]


def test_call_after_the_pause_is_immediate(clock: Clock) -> None:
    wakeup = Wakeup("task", pause=1.0)
    for clock.now in (100.0, 100.5, 102.5):
        wakeup.soon()
    assert clock.runs == [100.0, 101.0, 102.5]


def test_later_request_needs_no_second_run(clock: Clock) -> None:
    wakeup = Wakeup("task")
    wakeup.after(5)
    wakeup.after(20)
    assert clock.runs == [105.0]


def test_earlier_request_gets_its_own_run(clock: Clock) -> None:
    wakeup = Wakeup("task")
    wakeup.after(20)
    wakeup.after(5)
    wakeup.soon()
    assert clock.runs == [120.0, 105.0, 100.0]


def test_past_is_immediate_and_far_future_is_left_to_the_beat(clock: Clock) -> None:
    Wakeup("task").at(NOW - timedelta(hours=1), now=NOW)
    Wakeup("task").at(NOW + timedelta(seconds=HORIZON_SECONDS + 1), now=NOW)
    Wakeup("task").at(None, now=NOW)
    assert clock.runs == [100.0]


def test_constant_requests_run_once_per_pause(clock: Clock) -> None:
    wakeup = Wakeup("task", pause=1.0)
    for clock.now in (100.0, 100.1, 101.1, 102.1):  # each run requests the next
        wakeup.at(NOW, now=NOW)
    assert clock.runs == [100.0, 101.0, 102.0, 103.0]


def test_missing_broker_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(wakeups.current_app, "send_task", refuse)
    Wakeup("task").soon()


@pytest.mark.parametrize("wakeup", WAKEUPS, ids=lambda wakeup: wakeup.task)
def test_each_wakeup_has_a_task_and_a_beat_entry(wakeup: Wakeup) -> None:
    current_app.loader.import_default_modules()
    assert wakeup.task in current_app.tasks
    (interval,) = [
        entry["schedule"]
        for entry in settings.CELERY_BEAT_SCHEDULE.values()
        if wakeup.task in entry.get("args", [[]])[0]
    ]
    assert interval < HORIZON_SECONDS


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("subject", "wakeup"),
    [
        ("demonstration:1", demonstrations),
        ("job:1", notifications.following),
        ("user:1", notifications.following),
        ("job:1", sessions),
    ],
)
def test_recorded_event_wakes_its_readers(subject: str, wakeup: Wakeup, monkeypatch: pytest.MonkeyPatch) -> None:
    subjects: list[str] = []
    monkeypatch.setattr(wakeup, "soon", lambda: subjects.append(subject))
    with unit_of_work():
        record(events.DemonstrationStarted(name="x"), subject=subject, actor=PLATFORM, at=NOW)
        assert subjects == []
    assert subjects == [subject]


@pytest.mark.django_db(transaction=True)
def test_delivery_is_requested_after_the_commit(clock: Clock) -> None:
    with transaction.atomic():
        notifications.send_at(NOW + timedelta(seconds=3), now=NOW)
        assert clock.runs == []
    assert len(clock.runs) == 1
