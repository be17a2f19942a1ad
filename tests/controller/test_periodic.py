"""Several periodic tasks in one message: a slow one delays the others once."""

from collections import Counter
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import ProgrammingError

from hekla.controller import tasks


def test_task_that_still_runs_is_left_out_and_one_that_fails_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    ran, started, may_end = Counter[str](), Event(), Event()

    def slow() -> None:
        ran["slow"] += 1
        started.set()
        assert may_end.wait(20)

    def broken() -> None:
        ran["broken"] += 1
        raise ValueError

    def last() -> None:
        ran["last"] += 1

    known = {"slow": slow, "broken": broken, "last": last}
    monkeypatch.setattr(tasks, "current_app", SimpleNamespace(tasks=known))
    first = Thread(target=tasks.run_each, args=(list(known),))
    first.start()
    assert started.wait(20)
    tasks.run_each(list(known))
    assert ran == {"slow": 1, "broken": 1, "last": 1}
    may_end.set()
    first.join(20)
    tasks.run_each(list(known))
    assert ran == {"slow": 2, "broken": 3, "last": 3}


@pytest.mark.django_db
def test_all_tasks_run_if_it_is_unknown_which_have_work(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []

    def fail(_names: list[str], **_options: Any) -> None:
        raise ProgrammingError("no such table")

    known = {name: lambda name=name: ran.append(name) for name in ("one", "other")}
    monkeypatch.setattr(tasks, "current_app", SimpleNamespace(tasks=known))
    monkeypatch.setattr(tasks.due_work, "tasks_with_work", fail)
    tasks.run_each(list(known))
    assert ran == ["one", "other"]
    assert "no such table" in caplog.text
