"""Routing: a job is placed on the cluster that can start it first."""

from datetime import UTC, datetime, timedelta

import pytest

from hekla.domain.routing import Feasibility, PlacementCandidate, rank_candidates

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(cluster: str, chance: Feasibility, minutes: float | None = None, **more: object) -> PlacementCandidate:
    when = None if minutes is None else NOON + timedelta(minutes=minutes)
    return PlacementCandidate(cluster, f"{cluster}-queue", chance, earliest=when, latest=when, **more)  # type: ignore[arg-type]


CASES = {
    "now before later": ([at("a", Feasibility.WAITS, 1), at("b", Feasibility.NOW)], "b"),
    "who evicts nobody": ([at("a", Feasibility.NOW, evicts=1), at("b", Feasibility.NOW, load=0.9)], "b"),
    "evicting before waiting": ([at("a", Feasibility.WAITS, 1), at("b", Feasibility.NOW, evicts=9)], "b"),
    "the one that is used less": ([at("a", Feasibility.NOW, load=0.5), at("b", Feasibility.NOW, load=0.25)], "b"),
    "by name where all is equal": ([at("b", Feasibility.NOW), at("a", Feasibility.NOW)], "a"),
    "earlier": ([at("a", Feasibility.WAITS, 20), at("b", Feasibility.WAITS, 10)], "b"),
    "a time that is known": ([at("a", Feasibility.WAITS), at("b", Feasibility.WAITS, 600)], "b"),
    "waiting by load": ([at("a", Feasibility.WAITS, load=1.0), at("b", Feasibility.WAITS, load=0.5)], "b"),
    "an answer before none": ([at("a", Feasibility.UNANSWERED), at("b", Feasibility.WAITS)], "b"),
    "whom nobody can tell of last": ([at("a", Feasibility.DELEGATED), at("b", Feasibility.WAITS)], "b"),
    "untold before never": ([at("a", Feasibility.NEVER), at("b", Feasibility.DELEGATED)], "b"),
    "waiting before out of reach": ([at("a", Feasibility.AWAY), at("b", Feasibility.WAITS)], "b"),
    "paused before out of reach": ([at("a", Feasibility.AWAY), at("b", Feasibility.PAUSED)], "b"),
    "out of reach before never": ([at("a", Feasibility.NEVER), at("b", Feasibility.AWAY)], "b"),
    "closed after all": ([at("a", Feasibility.CLOSED), at("b", Feasibility.NEVER)], "b"),
}


@pytest.mark.parametrize("case", CASES)
def test_best_candidate_is_first(case: str) -> None:
    prospects, first = CASES[case]
    assert rank_candidates(prospects)[0].cluster == first
    assert rank_candidates(reversed(prospects))[0].cluster == first


def test_candidate_as_plain_data() -> None:
    data = at("a", Feasibility.WAITS, 5, reasons=({"code": "x"}, {"code": "y"}), load=1 / 3).as_data()
    assert data["earliest_at"] == (NOON + timedelta(minutes=5)).isoformat()
    assert (data["chance"], data["load"], data["reasons"]) == ("waits", 0.333, [{"code": "x"}])
