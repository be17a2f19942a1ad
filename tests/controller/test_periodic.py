"""Several periodic tasks in one message: a slow one delays the others once."""

from collections import Counter
from threading import Event, Thread
from types import SimpleNamespace

import pytest

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
