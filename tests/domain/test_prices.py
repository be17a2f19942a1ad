"""Prices are exact, and what a month will cost follows from the days before."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hekla.domain.cost_forecast import DAY, DailyCosts, forecast
from hekla.domain.errors import Invalid
from hekla.domain.prices import PricedResource, PriceRates, PriceSpec, as_decimal, cost, in_words

BERLIN = ZoneInfo("Europe/Berlin")
CPU, GPU, MEMORY = PricedResource.CPU, PricedResource.GPU, PricedResource.MEMORY
HOUR = timedelta(hours=1)
SPEC: dict[str, Any] = {
    **{"name": "2027", "currency": "EUR", "cpu": "0.03", "memory": "0.005", "gpu": "1", "models": {"H100": "3.5"}},
    "windows": [
        {"days": "workdays", "begin": 20, "end": 6, "factor": "0.7"},
        {"days": "weekend", "begin": 0, "end": 0, "factor": "0.5"},
    ],
}


def rates(**more: Any) -> PriceRates:
    return PriceRates.of(PriceSpec.parse({**SPEC, **more}), BERLIN, {7: "1.5"})


@pytest.mark.parametrize(
    ("at", "rate"),
    [
        ((2027, 1, 4, 8), 3_500_000),  # Monday 9:00 in Berlin
        ((2027, 1, 4, 19), 2_450_000),  # 20:00
        ((2027, 1, 5, 4), 2_450_000),  # 5:00
        ((2027, 1, 5, 5), 3_500_000),  # 6:00
        ((2027, 1, 8, 23), 1_750_000),  # Saturday 0:00
        ((2027, 7, 5, 18), 2_450_000),  # 20:00 in summer
    ],
)
def test_hours_of_the_console_decide(at: tuple[int, ...], rate: int) -> None:
    assert rates().rate(GPU, 1, datetime(*at, tzinfo=UTC), "H100") == rate


def test_factors_of_a_queue_multiply_once_rounded() -> None:
    noon = datetime(2027, 1, 4, 11, tzinfo=UTC)
    assert rates().rate(GPU, 7, noon, "H100") == 5_250_000
    assert rates().rate(GPU, 7, noon, "other") == 1_500_000
    assert rates(cpu="0.000001").rate(CPU, 7, noon) == 2  # 1.5 millionths: half up
    assert cost(MEMORY, 3_600_000 * 1024, 5_000) == 5_000
    assert cost(CPU, 3_600_000 * 500, 30_000) == 15_000


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("cpu", "-1", "cpu"),
        ("cpu", "1e3", "cpu"),
        ("cpu", "0.1234567", "cpu"),
        ("cpu", float("nan"), "cpu"),
        ("models", {"H100": "x"}, "models.H100"),
        ("queues", {"default": "1000.5555"}, "queues.default"),
        ("currency", "", "currency"),
        ("windows", [SPEC["windows"][1], {"begin": 3, "end": 4, "factor": "1"}], "windows.1"),
        ("windows", [{"begin": 24, "end": 4, "factor": "1"}], "windows.0.begin"),
    ],
)
def test_wrong_prices_are_refused_where_they_are(field: str, value: object, path: str) -> None:
    with pytest.raises(Invalid) as caught:
        PriceSpec.parse({**SPEC, field: value})
    assert [problem.path for problem in caught.value.problems] == [path]


def test_money_in_words_and_exact() -> None:
    assert in_words(1_234_505_000, "EUR") == "1,234.51 EUR"
    assert in_words(4_000, "EUR") == "0.00 EUR"
    assert as_decimal(-1_500_001) == "-1.500001"
    assert PriceSpec.parse({**SPEC, "cpu": 0.1}).cpu == "0.1"


def days(first: datetime, until: datetime, amount: int = 100) -> dict[datetime, int]:
    return {first + number * DAY: amount for number in range((until - first) // DAY)}


def test_forecast_is_what_was_spent_and_the_mean_of_two_weeks() -> None:
    first, today = datetime(2026, 8, 1, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC)
    daily = DailyCosts(first, today, {**days(first, today), today: 50})
    found = forecast(daily, today + 12 * HOUR)
    assert (found.spent, found.total, found.days) == (1550, 1550 + 1450, 14)
    assert found.error == 0
    assert [one.month.month for one in found.past] == [10, 9, 8]


def test_forecast_says_how_wrong_it_was() -> None:
    first, today = datetime(2026, 9, 1, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC)
    late = datetime(2026, 10, 16, tzinfo=UTC)
    costs = {**days(first, today), **days(late, late + 16 * DAY, 300)}
    found = forecast(DailyCosts(first, today, costs), today)
    past = found.past[0]
    assert (past.forecast, past.actual) == (3100, 1500 + 4800)
    assert found.error == pytest.approx((3200 / 6300 + 0) / len(found.past))


def test_too_little_past_is_no_forecast() -> None:
    today = datetime(2026, 11, 16, tzinfo=UTC)
    found = forecast(DailyCosts(today - 6 * DAY, today, days(today - 6 * DAY, today)), today)
    assert (found.total, found.days, found.error) == (None, 6, None)
    assert found.spent == 600
