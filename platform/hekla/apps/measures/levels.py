"""Resolutions of measures, and how long each is kept. Days are UTC days."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hekla.apps.usage.levels import LEVELS

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
KEEP_MINUTES, KEEP_HOURS, KEEP_DAYS = timedelta(days=2), timedelta(days=400), timedelta(days=3660)
"""Facts are kept as long as the sums of hours."""
MEASURED = LEVELS[-1].retention - DAY
"""Older hours are not computed again: the samples of use are deleted, so useful time would become unmeasured."""
PARTS = {"queue": "queue_id", "tenant": "tenant_id", "person": "owner_id", "kind": "kind"}
"""The facts of holders by which their sums of hours and days are added up, with their columns."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def floor(at: datetime, step: timedelta) -> datetime:
    """The start of the minute, hour or UTC day."""
    return at - (at - _EPOCH) % step


def hours(begin: datetime, end: datetime) -> Iterator[datetime]:
    """The starts of the hours that overlap the time from `begin` until `end`; none if it is empty."""
    at = floor(begin, HOUR)
    while at < end and begin < end:
        yield at
        at += HOUR


def to_ms(at: datetime) -> int:
    """Whole milliseconds since 1970."""
    return (at - _EPOCH) // _MILLISECOND


def from_ms(milliseconds: int) -> datetime:
    """The instant so many milliseconds after 1970."""
    return _EPOCH + milliseconds * _MILLISECOND
