"""Start delays: the reason is recorded once it has lasted, and again only if it changes."""

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
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    delays: list[tuple[int, str]] = []
    monkeypatch.setattr(services, "delay", lambda _cluster, _epoch, pk, text, **_: delays.append((pk, text)))
    monkeypatch.setattr(start_delays, "REPORTED_AFTER_SECONDS", 0.0)
    return delays


@pytest.fixture
def lease() -> LeaseContext:
    backend: Any = SimpleNamespace()
    return LeaseContext(1, 1, backend, ReconcilerState())


def record(lease: LeaseContext, **late: list[str]) -> None:
    start_delays.record_delays(lease, {int(pk[1:]): texts for pk, texts in late.items()}, now=clock.now())


def test_delay_is_recorded_once_despite_other_amounts_in_use(lease, recorded) -> None:
    for used in range(3):
        record(lease, j1=[FULL.format("a", used), FULL.format("a", used + 1)])
    assert [pk for pk, _ in recorded] == [1]
    record(lease, j1=[FULL.format("b", 9)])
    record(lease, j1=[FULL.format("a", 9)])
    assert [pk for pk, _ in recorded] == [1, 1]


def test_delay_is_recorded_again_if_it_recurs(lease, recorded) -> None:
    record(lease, j1=[FULL.format("a", 9)], j2=[FULL.format("a", 9)])
    record(lease, j2=[FULL.format("a", 9)])
    record(lease, j1=[FULL.format("a", 9)])
    assert [pk for pk, _ in recorded] == [1, 2, 1]


def test_short_delay_is_not_recorded(lease, recorded, monkeypatch) -> None:
    monkeypatch.setattr(start_delays, "REPORTED_AFTER_SECONDS", 1000.0)
    record(lease, j1=[FULL.format("a", 9)])
    record(lease)
    assert (recorded, lease.state.start_delays) == ([], {})
