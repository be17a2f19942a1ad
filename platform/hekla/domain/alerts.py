"""When an alert rule fires for a subject, and when that is over. A pure state machine: facts in, changes out.

The threshold to fire and the one to clear differ, and both can require a time, so a value that flaps does not flood
people. What is not known changes nothing until it is unknown for a whole window, counted from when the rule is watched
without a gap: a console that starts gives no verdict about the time in which it was off.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

WINDOW = timedelta(minutes=2)
"""Without data for so long, the state is NO_DATA. A longer pause between two evaluations is a gap."""


class AlertState(StrEnum):
    """The state of a rule for one subject."""

    NORMAL = "normal"
    PENDING = "pending"  # beyond the threshold, not for long enough yet
    FIRING = "firing"
    RECOVERING = "recovering"  # beyond the threshold to clear, not for long enough yet
    NO_DATA = "no_data"


class AlertReason(StrEnum):
    """Why a state changed."""

    BREACH = "breach"  # the value passed the threshold
    DURATION = "duration"  # it stayed there for the whole time
    CLEAR = "clear"  # the value passed the threshold to clear
    NO_DATA = "no_data"
    DATA = "data"  # there is data again
    GONE = "gone"  # the subject does not exist any more, or is out of scope
    RULE = "rule"  # the rule was changed or turned off


class AlertComparison(StrEnum):
    """On which side of the threshold a value fires."""

    ABOVE = "above"
    BELOW = "below"


class Absence(StrEnum):
    """Why there is no value: the cluster cannot be read, or there is no such subject."""

    NO_DATA = "no_data"
    GONE = "gone"


AlertReading = float | Absence

TRANSITIONS = frozenset(
    {
        (AlertState.NORMAL, AlertState.PENDING),
        (AlertState.NORMAL, AlertState.FIRING),  # no time is required
        (AlertState.PENDING, AlertState.NORMAL),
        (AlertState.PENDING, AlertState.FIRING),
        (AlertState.FIRING, AlertState.RECOVERING),
        (AlertState.FIRING, AlertState.NORMAL),
        (AlertState.RECOVERING, AlertState.FIRING),
        (AlertState.RECOVERING, AlertState.NORMAL),
        *((state, AlertState.NO_DATA) for state in AlertState if state is not AlertState.NO_DATA),
        (AlertState.NO_DATA, AlertState.NORMAL),
        (AlertState.NO_DATA, AlertState.FIRING),
    }
)


@dataclass(frozen=True, slots=True)
class AlertCondition:
    """`clear`: the threshold to clear, on the safe side of `threshold`. `duration`: how long a value must be beyond the
    threshold; `recovery`: how long it must be beyond the threshold to clear.
    """

    comparison: AlertComparison
    threshold: float
    clear: float
    duration: timedelta = timedelta()
    recovery: timedelta = timedelta()

    def is_breach(self, value: float) -> bool:
        """Whether the value fires."""
        return value > self.threshold if self.comparison is AlertComparison.ABOVE else value < self.threshold

    def is_clear(self, value: float) -> bool:
        """Whether the value ends an alert. Between the thresholds it neither fires nor clears."""
        return value <= self.clear if self.comparison is AlertComparison.ABOVE else value >= self.clear


@dataclass(frozen=True, slots=True)
class AlertStatus:
    """The state for one subject. `is_open`: it fired and has not cleared. `lost_at`: the first reading without data."""

    state: AlertState
    since: datetime
    is_open: bool = False
    lost_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AlertTransition:
    """A change of the state."""

    old: AlertState
    new: AlertState
    reason: AlertReason


def advance(
    condition: AlertCondition,
    status: AlertStatus | None,
    reading: AlertReading,
    *,
    watched_since: datetime,
    now: datetime,
) -> tuple[AlertStatus, Sequence[AlertTransition]]:
    """The status after a reading, and the changes that led to it, at most two.

    `status`: None for a subject without one; it is normal. `watched_since`: since when there was no gap between two
    evaluations.
    """
    found = status or AlertStatus(AlertState.NORMAL, now)
    if isinstance(reading, float) and math.isnan(reading):
        reading = Absence.NO_DATA
    passed: list[AlertTransition] = []
    while step := _step(condition, found, reading, watched_since, now):
        new, reason = step
        passed.append(AlertTransition(found.state, new, reason))
        is_open = new in {AlertState.FIRING, AlertState.RECOVERING} or (new is AlertState.NO_DATA and found.is_open)
        found = AlertStatus(new, now, is_open, found.lost_at if new is AlertState.NO_DATA else None)
    return _noted(found, reading, now), passed


def _noted(status: AlertStatus, reading: AlertReading, now: datetime) -> AlertStatus:
    """With the time since when there is no data."""
    if reading is not Absence.NO_DATA:
        return replace(status, lost_at=None) if status.lost_at else status
    return status if status.lost_at else replace(status, lost_at=now)


def _step(
    condition: AlertCondition, status: AlertStatus, reading: AlertReading, watched_since: datetime, now: datetime
) -> tuple[AlertState, AlertReason] | None:
    """The next state and why; None: no change."""
    if isinstance(reading, Absence):
        return _without_value(status, reading, watched_since, now)
    elapsed, value = now - max(status.since, watched_since), float(reading)
    match status.state:
        case AlertState.NO_DATA:
            return AlertState.FIRING if status.is_open else AlertState.NORMAL, AlertReason.DATA
        case AlertState.NORMAL:
            return _from_normal(condition, value)
        case AlertState.PENDING:
            return _from_pending(condition, value, elapsed)
        case AlertState.FIRING:
            return _from_firing(condition, value)
        case AlertState.RECOVERING:
            return _from_recovering(condition, value, elapsed)


def _without_value(
    status: AlertStatus, absence: Absence, watched_since: datetime, now: datetime
) -> tuple[AlertState, AlertReason] | None:
    if absence is Absence.GONE:
        return (AlertState.NORMAL, AlertReason.GONE) if status.state is not AlertState.NORMAL else None
    is_lost = status.lost_at is not None and now - max(status.lost_at, watched_since) >= WINDOW
    is_news = is_lost and status.state is not AlertState.NO_DATA
    return (AlertState.NO_DATA, AlertReason.NO_DATA) if is_news else None


def _from_normal(condition: AlertCondition, value: float) -> tuple[AlertState, AlertReason] | None:
    if not condition.is_breach(value):
        return None
    return AlertState.PENDING if condition.duration else AlertState.FIRING, AlertReason.BREACH


def _from_pending(condition: AlertCondition, value: float, elapsed: timedelta) -> tuple[AlertState, AlertReason] | None:
    if not condition.is_breach(value):
        return AlertState.NORMAL, AlertReason.CLEAR
    return (AlertState.FIRING, AlertReason.DURATION) if elapsed >= condition.duration else None


def _from_firing(condition: AlertCondition, value: float) -> tuple[AlertState, AlertReason] | None:
    if not condition.is_clear(value):
        return None
    return AlertState.RECOVERING if condition.recovery else AlertState.NORMAL, AlertReason.CLEAR


def _from_recovering(
    condition: AlertCondition, value: float, elapsed: timedelta
) -> tuple[AlertState, AlertReason] | None:
    if not condition.is_clear(value):
        return AlertState.FIRING, AlertReason.BREACH
    return (AlertState.NORMAL, AlertReason.DURATION) if elapsed >= condition.recovery else None


def due_at(condition: AlertCondition, status: AlertStatus, *, watched_since: datetime) -> datetime | None:
    """When the state changes if the readings stay as they are; None: never."""
    if status.lost_at is not None:
        return None if status.state is AlertState.NO_DATA else max(status.lost_at, watched_since) + WINDOW
    times = {AlertState.PENDING: condition.duration, AlertState.RECOVERING: condition.recovery}
    needed = times.get(status.state)
    return None if needed is None else max(status.since, watched_since) + needed


@dataclass(frozen=True, slots=True)
class AlertEpisode:
    """A time in which a rule would have fired. `until`: None if it still does. `peak`: the worst value."""

    subject: str
    begin: datetime
    until: datetime | None
    peak: float


def replay(
    condition: AlertCondition, subject: str, course: Sequence[tuple[datetime, float]], *, now: datetime
) -> list[AlertEpisode]:
    """When the rule would have fired. `course`: each change of the value, in order; it stays until the next one."""
    if not course:
        return []
    status: AlertStatus | None = None
    found: list[AlertEpisode] = []
    begin, ends = course[0][0], [at for at, _value in course[1:]] + [now]
    for (at, value), end in zip(course, ends, strict=True):
        moment: datetime | None = at
        while moment is not None and moment <= end:
            status, passed = advance(condition, status, value, watched_since=begin, now=moment)
            _note_episodes(found, passed, subject, moment, value)
            due = due_at(condition, status, watched_since=begin)
            moment = due if due is not None and due > moment and (due < end or end == now) else None
        if found and found[-1].until is None:
            worst = max if condition.comparison is AlertComparison.ABOVE else min
            found[-1] = replace(found[-1], peak=worst(found[-1].peak, value))
    return found


def _note_episodes(
    found: list[AlertEpisode], passed: Sequence[AlertTransition], subject: str, at: datetime, value: float
) -> None:
    for one in passed:
        if one.new is AlertState.FIRING and one.old is not AlertState.RECOVERING:
            found.append(AlertEpisode(subject, at, None, value))
        elif one.new is AlertState.NORMAL and one.old in {AlertState.FIRING, AlertState.RECOVERING}:
            found[-1] = replace(found[-1], until=at)
