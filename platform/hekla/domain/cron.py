"""Cron expressions: recurring times by the clock of a time zone.

Five fields: minute, hour, day of the month, month, day of the week (0 or 7 is Sunday). Each is `*` (or `?`), a number,
a name (`jan`, `mon`), a range `a-b`, a step `*/n`, `a-b/n` or `a/n` (from a to the end), or a list of these. If both
days are restricted, one match is enough; else both must match. `@yearly`, `@monthly`, `@weekly`, `@daily` (or
`@midnight`) and `@hourly` are short forms. Seconds, `L`, `W`, `#`, `@every` and `@reboot` are refused.

When clocks are put forward or back, a wall time can be missing, or occur twice:

* If the hour is `*`, each minute that the clock really shows counts: in the repeated hour both times, in the missing
  hour none.
* Any other expression means a time of day, once a day. A time that occurs twice counts the first time. A missing time
  counts at the instant of the change; several missing times count once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import product
from zoneinfo import ZoneInfo, available_timezones

from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import quote, suggest

MAX_LENGTH = 200
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
_FARTHEST = 9 * 366
"""29 February is at most eight years away."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class InvalidCron(ValueError):
    """Not a cron expression or time zone, or an expression that never matches; the message says why."""


@dataclass(frozen=True, slots=True)
class _Field:
    """The allowed values of one field of an expression."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field(gettext_noop("minute"), 0, 59),
    _Field(gettext_noop("hour"), 0, 23),
    _Field(gettext_noop("day of the month"), 1, 31),
    _Field(gettext_noop("month"), 1, 12, _MONTHS),
    _Field(gettext_noop("day of the week"), 0, 7, _WEEKDAYS),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression. None means no restriction; weekdays count from Sunday, which is 0."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...] | None
    days: frozenset[int] | None
    months: frozenset[int]
    weekdays: frozenset[int] | None

    def matches(self, day: date) -> bool:
        """Whether the expression matches this day."""
        if day.month not in self.months:
            return False
        by_day = self.days is None or day.day in self.days
        by_weekday = self.weekdays is None or day.isoweekday() % 7 in self.weekdays
        if self.days is not None and self.weekdays is not None:
            return by_day or by_weekday
        return by_day and by_weekday

    def after(self, instant: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Every matching instant (in UTC) after this one, in order."""
        for moment in self._moments(_local_day(instant, zone) - _DAY, 1, zone):
            if moment > instant:
                yield moment

    def latest(self, instant: datetime, zone: ZoneInfo) -> datetime | None:
        """The last matching instant (in UTC), up to and including this one; None if nine years have none."""
        return next(
            (moment for moment in self._moments(_local_day(instant, zone) + _DAY, -1, zone) if moment <= instant), None
        )

    def _moments(self, day: date, step: int, zone: ZoneInfo) -> Iterator[datetime]:
        """All matching instants from a day on, or (step -1) back from it, each once and in that order.

        A clock change moves a time into the next day at most, so two days are sorted together.
        """
        held: set[datetime] = set()
        barren = 0
        while barren <= _FARTHEST:
            today = self._of_day(day, zone) if self.matches(day) else []
            barren = 0 if today else barren + 1
            edge = min(today, default=None) if step > 0 else max(today, default=None)
            ready = {moment for moment in held if edge is None or (moment < edge if step > 0 else moment > edge)}
            yield from sorted(ready, reverse=step < 0)
            held = (held - ready) | set(today)
            day += step * _DAY
        yield from sorted(held, reverse=step < 0)

    def _of_day(self, day: date, zone: ZoneInfo) -> list[datetime]:
        """The instants of the matching wall times of a day."""
        midnight = datetime.combine(day, datetime.min.time())
        times = product(range(24) if self.hours is None else self.hours, self.minutes)
        wall_times = [midnight + timedelta(hours=hour, minutes=minute) for hour, minute in times]
        offset = midnight.replace(tzinfo=zone).utcoffset()
        if offset == (midnight + _DAY).replace(tzinfo=zone).utcoffset():
            return [(wall - (offset or timedelta())).replace(tzinfo=UTC) for wall in wall_times]
        return sorted({moment for wall in wall_times for moment in self._of_wall(wall, zone)})

    def _of_wall(self, wall: datetime, zone: ZoneInfo) -> Sequence[datetime]:
        first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if first.astimezone(zone).replace(tzinfo=None) != wall:
            return () if self.hours is None else (_change_between(second, first, zone),)
        return (first, second) if self.hours is None and first != second else (first,)


def _local_day(instant: datetime, zone: ZoneInfo) -> date:
    return instant.astimezone(zone).date()


def _change_between(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first minute of the new time, if the clock changes between these instants."""
    old = before.astimezone(zone).utcoffset()
    low, high = 0, round((after - before) / _MINUTE)
    while low < high:
        middle = (low + high) // 2
        changed = (before + middle * _MINUTE).astimezone(zone).utcoffset() != old
        low, high = (low, middle) if changed else (middle + 1, high)
    return before + low * _MINUTE


@cache
def zone(name: str) -> ZoneInfo:
    """The time zone of that name. Raises InvalidCron."""
    names = available_timezones()
    if name not in names:
        hint = suggest(name, names) or translate(", for example Europe/Berlin.")
        raise InvalidCron(translate("Unknown time zone {name}{hint}", name=quote(name), hint=hint))
    return ZoneInfo(name)


def parse(text: str) -> Cron:
    """Parse an expression. Raises InvalidCron."""
    words = _SHORT.get(text.strip().lower(), text).split()
    if words and words[0].startswith("@"):
        raise InvalidCron(translate("{word} is not one of {words}.", word=quote(words[0]), words=", ".join(_SHORT)))
    if len(words) != len(_FIELDS) or len(text) > MAX_LENGTH:
        names = ", ".join(translate(field.name) for field in _FIELDS)
        raise InvalidCron(
            translate(
                "A cron expression has five fields: {names}. This one has {count}.", names=names, count=len(words)
            )
        )
    minutes, hours, days, months, weekdays = (
        _values(word.lower(), field) for word, field in zip(words, _FIELDS, strict=True)
    )
    cron = Cron(
        minutes=tuple(minutes if minutes is not None else range(60)),
        hours=None if hours is None else tuple(hours),
        days=None if days is None else frozenset(days),
        months=frozenset(months if months is not None else range(1, 13)),
        weekdays=None if weekdays is None else frozenset(value % 7 for value in weekdays),
    )
    if cron.weekdays is None and cron.days and not any(min(cron.days) <= _LONGEST[m - 1] for m in cron.months):
        raise InvalidCron(translate("These months do not have this day, so the schedule would never run."))
    return cron


def _values(word: str, field: _Field) -> list[int] | None:
    """The values of one field in order; None if it is not restricted."""
    if word in ("*", "?", "*/1"):
        return None
    return sorted({value for part in word.split(",") for value in _part(part, field)})


def _part(part: str, field: _Field) -> range:
    body, slash, step_text = part.partition("/")
    if slash and not (step_text.isascii() and step_text.isdigit() and 0 < int(step_text) <= field.high):
        raise InvalidCron(
            translate(
                "{field}, {part}: the step after “/” must be between 1 and {most}.",
                field=translate(field.name),
                part=quote(part),
                most=field.high,
            )
        )
    low_text, dash, high_text = body.partition("-")
    last = min(field.high, 6) if field.names is _WEEKDAYS else field.high
    if body in ("*", "?"):
        low, high = field.low, last
    else:
        low = _value(low_text, field)
        high = _value(high_text, field) if dash else max(low, last) if slash else low
    if low > high:
        raise InvalidCron(
            translate(
                "{field}, {part}: a range must go upwards. Use two ranges, separated by a comma.",
                field=translate(field.name),
                part=quote(part),
            )
        )
    return range(low, high + 1, int(step_text) if slash else 1)


def _value(text: str, field: _Field) -> int:
    if text in field.names:
        return field.names.index(text) + field.low
    if not (text.isascii() and text.isdigit() and len(text) < 4 and field.low <= int(text) <= field.high):  # noqa: PLR2004
        raise InvalidCron(_not_a_value(text, field))
    return int(text)


def _not_a_value(text: str, field: _Field) -> str:
    values = {"field": translate(field.name), "given": quote(text), "low": field.low, "high": field.high}
    if not field.names:
        return translate("{field}: {given} is not a number from {low} to {high}.", **values)
    return translate(
        "{field}: {given} is not a number from {low} to {high} or a name, for example {name}.",
        name=field.names[1],
        **values,
    )
