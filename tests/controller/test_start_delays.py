"""Why the cluster does not take a job's pods is told when it has lasted, and again only when the reason is another."""

from types import SimpleNamespace
from typing import Any

import pytest

from hekla.apps.jobs import services
from hekla.controller import start_delays
from hekla.controller.lease_context import LeaseContext
from hekla.controller.state import ReconcilerState
from hekla.lib import clock

FULL = "exceeded quota: {}, requested: pods=1, used: pods={}, limited: pods=9"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    said: list[tuple[int, str]] = []
    monkeypatch.setattr(services, "delay", lambda _cluster, _epoch, pk, text, **_: said.append((pk, text)))
    monkeypatch.setattr(start_delays, "REPORTED_AFTER_SECONDS", 0.0)
    return said


@pytest.fixture
def lease() -> LeaseContext:
    backend: Any = SimpleNamespace()
    return LeaseContext(1, 1, backend, ReconcilerState())


def tell(lease: LeaseContext, **late: list[str]) -> None:
    start_delays.record_delays(lease, {int(pk[1:]): texts for pk, texts in late.items()}, now=clock.now())


def test_it_is_told_once_and_other_numbers_in_use_are_no_news(lease, told) -> None:
    for used in range(3):
        tell(lease, j1=[FULL.format("a", used), FULL.format("a", used + 1)])
    assert [pk for pk, _ in told] == [1]
    tell(lease, j1=[FULL.format("b", 9)])
    tell(lease, j1=[FULL.format("a", 9)])
    assert [pk for pk, _ in told] == [1, 1]


def test_it_is_told_again_when_it_begins_again(lease, told) -> None:
    tell(lease, j1=[FULL.format("a", 9)], j2=[FULL.format("a", 9)])
    tell(lease, j2=[FULL.format("a", 9)])
    tell(lease, j1=[FULL.format("a", 9)])
    assert [pk for pk, _ in told] == [1, 2, 1]


def test_what_is_over_in_a_moment_is_not_told(lease, told, monkeypatch) -> None:
    monkeypatch.setattr(start_delays, "REPORTED_AFTER_SECONDS", 1000.0)
    tell(lease, j1=[FULL.format("a", 9)])
    tell(lease)
    assert (told, lease.state.start_delays) == ([], {})
