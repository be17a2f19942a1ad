"""Why the cluster does not take a job's pods is told when it has lasted, and again only when the reason is another."""

from types import SimpleNamespace
from typing import Any

import pytest

from hekla.apps.jobs import services
from hekla.controller import delays
from hekla.controller.observations import Hold, Memory
from hekla.lib import clock

FULL = "exceeded quota: {}, requested: pods=1, used: pods={}, limited: pods=9"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    said: list[tuple[int, str]] = []
    monkeypatch.setattr(services, "delay", lambda _cluster, _epoch, pk, text, **_: said.append((pk, text)))
    monkeypatch.setattr(delays, "TOLD_AFTER_SECONDS", 0.0)
    return said


@pytest.fixture
def hold() -> Hold:
    backend: Any = SimpleNamespace()
    return Hold(1, 1, backend, Memory())


def tell(hold: Hold, **late: list[str]) -> None:
    delays.tell(hold, {int(pk[1:]): texts for pk, texts in late.items()}, now=clock.now())


def test_it_is_told_once_and_other_numbers_in_use_are_no_news(hold, told) -> None:
    for used in range(3):
        tell(hold, j1=[FULL.format("a", used), FULL.format("a", used + 1)])
    assert [pk for pk, _ in told] == [1]
    tell(hold, j1=[FULL.format("b", 9)])
    tell(hold, j1=[FULL.format("a", 9)])
    assert [pk for pk, _ in told] == [1, 1]


def test_it_is_told_again_when_it_begins_again(hold, told) -> None:
    tell(hold, j1=[FULL.format("a", 9)], j2=[FULL.format("a", 9)])
    tell(hold, j2=[FULL.format("a", 9)])
    tell(hold, j1=[FULL.format("a", 9)])
    assert [pk for pk, _ in told] == [1, 2, 1]


def test_what_is_over_in_a_moment_is_not_told(hold, told, monkeypatch) -> None:
    monkeypatch.setattr(delays, "TOLD_AFTER_SECONDS", 1000.0)
    tell(hold, j1=[FULL.format("a", 9)])
    tell(hold)
    assert (told, hold.memory.delays) == ([], {})
