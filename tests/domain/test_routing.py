"""A job goes to the cluster that can start it first."""

from datetime import UTC, datetime, timedelta

import pytest

from hekla.domain.routing import Chance, Prospect, ranked

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(cluster: str, chance: Chance, minutes: float | None = None, **more: object) -> Prospect:
    when = None if minutes is None else NOON + timedelta(minutes=minutes)
    return Prospect(cluster, f"{cluster}-queue", chance, earliest=when, latest=when, **more)  # type: ignore[arg-type]


CASES = {
    "now before later": ([at("a", Chance.WAITS, 1), at("b", Chance.NOW)], "b"),
    "who evicts nobody": ([at("a", Chance.NOW, evicts=1), at("b", Chance.NOW, load=0.9)], "b"),
    "evicting before waiting": ([at("a", Chance.WAITS, 1), at("b", Chance.NOW, evicts=9)], "b"),
    "the one that is used less": ([at("a", Chance.NOW, load=0.5), at("b", Chance.NOW, load=0.25)], "b"),
    "by name where all is equal": ([at("b", Chance.NOW), at("a", Chance.NOW)], "a"),
    "earlier": ([at("a", Chance.WAITS, 20), at("b", Chance.WAITS, 10)], "b"),
    "a time that is known": ([at("a", Chance.WAITS), at("b", Chance.WAITS, 600)], "b"),
    "waiting by load": ([at("a", Chance.WAITS, load=1.0), at("b", Chance.WAITS, load=0.5)], "b"),
    "an answer before none": ([at("a", Chance.UNASKED), at("b", Chance.WAITS)], "b"),
    "whom nobody can tell of last": ([at("a", Chance.UNTOLD), at("b", Chance.WAITS)], "b"),
    "untold before never": ([at("a", Chance.NEVER), at("b", Chance.UNTOLD)], "b"),
    "waiting before out of reach": ([at("a", Chance.AWAY), at("b", Chance.WAITS)], "b"),
    "paused before out of reach": ([at("a", Chance.AWAY), at("b", Chance.PAUSED)], "b"),
    "out of reach before never": ([at("a", Chance.NEVER), at("b", Chance.AWAY)], "b"),
    "closed after all": ([at("a", Chance.CLOSED), at("b", Chance.NEVER)], "b"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_best_comes_first(case: str) -> None:
    prospects, first = CASES[case]
    assert ranked(prospects)[0].cluster == first
    assert ranked(reversed(prospects))[0].cluster == first


def test_what_is_told_of_it_is_plain_data() -> None:
    told = at("a", Chance.WAITS, 5, reasons=({"code": "x"}, {"code": "y"}), load=1 / 3).as_data()
    assert told["earliest_at"] == (NOON + timedelta(minutes=5)).isoformat()
    assert (told["chance"], told["load"], told["reasons"]) == ("waits", 0.333, [{"code": "x"}])
