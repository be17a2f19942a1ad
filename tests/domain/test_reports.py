"""When a report is due, and which time it covers, by the clock of its zone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hekla.domain.errors import Invalid
from hekla.domain.reports import ReportSpec

SHANGHAI = "Asia/Shanghai"


def spec(**more: Any) -> ReportSpec:
    return ReportSpec.parse({"name": "use", "sections": ["classes"], **more})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("period", "now", "begin", "end", "before"),
    [
        # 16:00 UTC is midnight in Shanghai.
        ("day", "2026-11-28 15:59", "2026-11-26 16:00", "2026-11-27 16:00", "2026-11-25 16:00"),
        ("day", "2026-11-28 16:00", "2026-11-27 16:00", "2026-11-28 16:00", "2026-11-26 16:00"),
        ("week", "2026-11-28 12:00", "2026-11-15 16:00", "2026-11-22 16:00", "2026-11-08 16:00"),
        ("month", "2026-03-01 00:00", "2026-01-31 16:00", "2026-02-28 16:00", "2025-12-31 16:00"),
    ],
)
def test_the_last_whole_period(period: str, now: str, begin: str, end: str, before: str) -> None:
    span = spec(period=period, time_zone=SHANGHAI).span(at(now))
    assert (span.begin, span.end, span.before) == (at(begin), at(end), at(before))


def test_days_with_a_clock_change_have_another_length() -> None:
    span = spec(period="day", time_zone="Europe/Berlin").span(at("2026-10-25 23:30"))
    assert span.end - span.begin == timedelta(hours=25)
    span = spec(period="day", time_zone="Asia/Kolkata").span(at("2026-11-28 00:00"))
    assert (span.begin, span.end) == (at("2026-11-26 18:00"), at("2026-11-27 18:00"))  # whole hours


@pytest.mark.parametrize(
    ("every", "following"),
    [
        ("never", []),
        ("day", ["2026-11-29 00:00", "2026-11-30 00:00"]),
        ("week", ["2026-11-30 00:00", "2026-12-07 00:00"]),
        ("month", ["2026-12-01 00:00", "2027-01-01 00:00"]),
    ],
)
def test_times(every: str, following: list[str]) -> None:
    found = spec(every=every, hour=8, time_zone=SHANGHAI)
    assert found.next_times(at("2026-11-28 00:00"), 2) == [at(text) for text in following]
    last = found.due_at(at("2026-12-24 12:00"))
    expected = {"never": None, "day": "2026-12-24 00:00", "week": "2026-12-21 00:00", "month": "2026-12-01 00:00"}[
        every
    ]
    assert last == (at(expected) if expected else None)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"scope": "tenant"}, "subject"),
        ({"subject": "lab"}, "subject"),
        ({"sections": []}, "sections"),
        ({"recipients": ["a", "a"]}, "recipients"),
        ({"hour": 24}, "hour"),
        ({"time_zone": "Mars/Base"}, "time_zone"),
        ({"name": "a\nb"}, "name"),
        ({"to": "x@example.org"}, "to"),
    ],
)
def test_problems(more: dict[str, Any], path: str) -> None:
    with pytest.raises(Invalid) as found:
        spec(**more)
    assert [problem.path for problem in found.value.problems] == [path]


def test_a_document_reads_back() -> None:
    one = spec(scope="queue", subject="vision", every="month", recipients=["alice"], paused=True)
    assert ReportSpec.parse(one.document()) == one
