"""What a month will cost: the days that are over, and the mean of the last two weeks for each day that is left.

Two weeks have each day of the week twice, so nights and weekends count as they should. How wrong this is, is found by
the same rule on past months: at the same day of each, from what was known then. Days and months are those of UTC.
Amounts are in millionths of the currency.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

DAY = timedelta(days=1)
MEAN_OF, LEAST_DAYS = 14, 7
"""Days whose mean is used; with fewer than the second there is no forecast."""
MOST_MONTHS = 6
"""Past months in which the rule is tried."""


@dataclass(frozen=True, slots=True)
class DailyCosts:
    """Costs by day (its begin). `first`: the first day that is known as a whole. `today`: not over yet.

    Days that are absent cost nothing.
    """

    first: datetime
    today: datetime
    costs: Mapping[datetime, int]

    def between(self, begin: datetime, end: datetime) -> int:
        """The sum of the days from `begin` until `end` (not included)."""
        return sum(cost for day, cost in self.costs.items() if begin <= day < end)


@dataclass(frozen=True, slots=True)
class PastForecast:
    """How the rule did in a past month: what it said on the same day, and what the month cost."""

    month: datetime
    forecast: int
    actual: int

    @property
    def error(self) -> float:
        """The difference as a part of what the month cost."""
        return (self.forecast - self.actual) / self.actual


@dataclass(frozen=True, slots=True)
class CostForecast:
    """What the month that begins at `begin` costs. `spent`: so far. `total`: at its end; None: too little past.

    `days`: whole days that the mean is of; LEAST_DAYS are needed. `past`: months in which the rule was tried.
    """

    begin: datetime
    end: datetime
    spent: int
    total: int | None
    days: int
    past: tuple[PastForecast, ...]

    @property
    def error(self) -> float | None:
        """The mean size of the errors in past months; None: it was never tried."""
        return sum(abs(one.error) for one in self.past) / len(self.past) if self.past else None


def month_of(at: datetime) -> datetime:
    """The first instant of the month."""
    return at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def month_after(month: datetime) -> datetime:
    """The first instant of the next month."""
    return month_of(month + 31 * DAY)


def forecast(daily: DailyCosts, now: datetime) -> CostForecast:
    """The forecast of the month of today."""
    begin = month_of(daily.today)
    end = month_after(begin)
    spent = daily.between(begin, daily.today + DAY)
    mean_of = _days(daily, daily.today)
    total = None
    if mean_of >= LEAST_DAYS:
        # What was spent today counts; the rest of today and the days after cost as much as the mean.
        left = (end - now) // timedelta(seconds=1)
        total = spent + _sum(daily, daily.today, mean_of) * left // (mean_of * 86_400)
    return CostForecast(begin, end, spent, total, mean_of, tuple(_past(daily)))


def _days(daily: DailyCosts, until: datetime) -> int:
    """How many whole days before are known, up to `MEAN_OF`."""
    return max(min((until - daily.first) // DAY, MEAN_OF), 0)


def _sum(daily: DailyCosts, until: datetime, days: int) -> int:
    return daily.between(until - days * DAY, until)


def _past(daily: DailyCosts) -> list[PastForecast]:
    """The last months that are known as a whole, newest first: as on the same day of each, at its begin."""
    found, month = list[PastForecast](), month_of(daily.today)
    day = daily.today.day
    for _number in range(MOST_MONTHS):
        end, month = month, month_of(month - DAY)
        at = min(month + (day - 1) * DAY, end - DAY)
        days, actual = _days(daily, at), daily.between(month, end)
        if month < daily.first or days < LEAST_DAYS or not actual:
            continue
        total = daily.between(month, at) + _sum(daily, at, days) * ((end - at) // DAY) // days
        found.append(PastForecast(month, total, actual))
    return found
