"""Waking tasks: often enough that nothing waits, seldom enough that nobody is buried in messages."""

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
from hekla.apps.notifications import wake as notifications
from hekla.apps.schedules.wake import starting as schedules
from hekla.apps.wakeups import HORIZON_SECONDS, Wakeup
from hekla.controller.tasks import moving
from hekla.domain import events

WAKEUPS = [demonstrations, flows, letters, moving, notifications.following, notifications.sending, schedules]
NOW = datetime(2026, 5, 1, tzinfo=UTC)


class Clock:
    """The seconds that the wakeups see, and when looks were asked for."""

    def __init__(self) -> None:
        self.now = 100.0
        self.looks: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def send(self, _task: str, *, countdown: float | None, expires: float, **_options: Any) -> None:
        assert expires > (countdown or 0)
        self.looks.append(round(self.now + (countdown or 0), 3))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(wakeups, "time", clock)
    monkeypatch.setattr(wakeups.current_app, "send_task", clock.send)
    return clock


def test_the_first_call_wakes_at_once_and_the_last_of_many_is_heeded_too(clock: Clock) -> None:
    wakeup = Wakeup("task", pause=1.0)
    for seconds in (0.0, 0.05, 0.5, 0.9):
        clock.now = 100.0 + seconds
        wakeup.soon()
    assert clock.looks == [100.0, 101.0]


def test_after_the_pause_it_is_woken_at_once_again(clock: Clock) -> None:
    wakeup = Wakeup("task", pause=1.0)
    for clock.now in (100.0, 100.5, 102.5):
        wakeup.soon()
    assert clock.looks == [100.0, 101.0, 102.5]


def test_a_look_that_comes_earlier_asks_for_the_later_ones_itself(clock: Clock) -> None:
    wakeup = Wakeup("task")
    wakeup.after(5)
    wakeup.after(20)
    assert clock.looks == [105.0]


def test_what_is_due_earlier_than_the_look_ahead_is_not_kept_waiting(clock: Clock) -> None:
    wakeup = Wakeup("task")
    wakeup.after(20)
    wakeup.after(5)
    wakeup.soon()
    assert clock.looks == [120.0, 105.0, 100.0]


def test_an_instant_that_is_past_is_now_and_one_far_ahead_is_left_to_the_beat(clock: Clock) -> None:
    Wakeup("task").at(NOW - timedelta(hours=1), now=NOW)
    Wakeup("task").at(NOW + timedelta(seconds=HORIZON_SECONDS + 1), now=NOW)
    Wakeup("task").at(None, now=NOW)
    assert clock.looks == [100.0]


def test_one_that_is_always_due_looks_once_in_a_pause(clock: Clock) -> None:
    wakeup = Wakeup("task", pause=1.0)
    for clock.now in (100.0, 100.1, 101.1, 102.1):  # each look asks for the next
        wakeup.at(NOW, now=NOW)
    assert clock.looks == [100.0, 101.0, 102.0, 103.0]


def test_without_a_broker_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(wakeups.current_app, "send_task", refuse)
    Wakeup("task").soon()


@pytest.mark.parametrize("wakeup", WAKEUPS, ids=lambda wakeup: wakeup.task)
def test_each_wakes_a_task_that_there_is_and_the_beat_looks_before_the_horizon(wakeup: Wakeup) -> None:
    current_app.loader.import_default_modules()
    assert wakeup.task in current_app.tasks
    (often,) = [entry["schedule"] for entry in settings.CELERY_BEAT_SCHEDULE.values() if entry["task"] == wakeup.task]
    assert often < HORIZON_SECONDS


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("subject", "wakeup"),
    [("demonstration:1", demonstrations), ("job:1", notifications.following), ("user:1", notifications.following)],
)
def test_what_is_written_wakes_who_waits_for_it(subject: str, wakeup: Wakeup, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[str] = []
    monkeypatch.setattr(wakeup, "soon", lambda: woken.append(subject))
    with unit_of_work():
        record(events.DemonstrationStarted(name="x"), subject=subject, actor=PLATFORM, at=NOW)
        assert woken == []
    assert woken == [subject]


@pytest.mark.django_db(transaction=True)
def test_a_delivery_is_sent_when_it_is_due_and_not_before_it_is_there(clock: Clock) -> None:
    with transaction.atomic():
        notifications.send_at(NOW + timedelta(seconds=3), now=NOW)
        assert clock.looks == []
    assert len(clock.looks) == 1
