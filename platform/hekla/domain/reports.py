"""The spec of a report: what it shows, of which time, when it is sent, and to whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from hekla.domain import cron
from hekla.domain.errors import Invalid, Problem
from hekla.domain.field_types import StrictInteger
from hekla.domain.model_errors import explain
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields

MAX_NAME, MAX_SECTIONS, MAX_RECIPIENTS = 60, 20, 50
_HOUR = timedelta(hours=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ReportScope(StrEnum):
    """What a report is about: all that its reader may see, or only one tenant, queue or cluster."""

    ALL = "all"
    TENANT = "tenant"
    QUEUE = "queue"
    CLUSTER = "cluster"


class ReportPeriod(StrEnum):
    """The time that a report covers: the last whole day, week (from Monday) or calendar month."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class ReportEvery(StrEnum):
    """When a report is sent: only by hand, each day, on Mondays, or on the first day of the month."""

    NEVER = "never"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class ReportObstacle(StrEnum):
    """Why a person does not get a report, or why it is not sent any more.

    disabled: sign-in is disabled for the person. hidden: they may not see what it is about.
    """

    DISABLED = "disabled"
    HIDDEN = "hidden"


_DAYS = {ReportEvery.DAY: "* * *", ReportEvery.WEEK: "* * 1", ReportEvery.MONTH: "1 * *"}


def _is_zone(name: str) -> str:
    cron.zone(name)
    return name


_Text = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[^\x00-\x1f\x7f]*$")]


@dataclass(frozen=True, slots=True)
class ReportSpan:
    """The time of a report, from `begin` until `end`, and the begin of the period before. All are whole hours."""

    begin: datetime
    end: datetime
    before: datetime


class ReportSpec(BaseModel):
    """A report. `subject`: the name of the tenant, queue or cluster; empty for all.

    `sections`: by name, in their order. `hour`: at which it is sent, by the clock of `time_zone`; the same zone decides
    where days begin. `recipients`: user names.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[_Text, Field(min_length=1, max_length=MAX_NAME)]
    scope: ReportScope = ReportScope.ALL
    subject: Annotated[_Text, Field(max_length=63)] = ""
    sections: Annotated[tuple[Annotated[str, Field(max_length=40)], ...], Field(min_length=1, max_length=MAX_SECTIONS)]
    period: ReportPeriod = ReportPeriod.WEEK
    every: ReportEvery = ReportEvery.NEVER
    hour: Annotated[StrictInteger, Field(ge=0, le=23)] = 8
    time_zone: Annotated[str, Field(max_length=64), AfterValidator(_is_zone)] = "UTC"
    recipients: Annotated[
        tuple[Annotated[_Text, Field(min_length=1, max_length=150)], ...], Field(max_length=MAX_RECIPIENTS)
    ] = ()
    paused: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _has_subject(self) -> "ReportSpec":
        if (self.scope is ReportScope.ALL) == bool(self.subject):
            one = translate("Choose the tenant, queue or cluster.")
            none = translate("A report about all has no subject.")
            raise InconsistentFields([Problem("subject", none if self.subject else one)])
        return self

    @model_validator(mode="after")
    def _names_each_once(self) -> "ReportSpec":
        for path, names in (("sections", self.sections), ("recipients", self.recipients)):
            for name in names:
                if names.count(name) > 1:
                    raise InconsistentFields([Problem(path, translate("{name} is named twice.", name=name))])
        return self

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "ReportSpec":
        """The report that this JSON-like document describes. Raises Invalid with every problem in it."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise Invalid(explain(error, cls)) from error

    def document(self) -> dict[str, Any]:
        """As JSON-like data; `parse` reads it back."""
        return self.model_dump(mode="json")

    @property
    def zone(self) -> ZoneInfo:
        return cron.zone(self.time_zone)

    def is_due_as(self, other: "ReportSpec") -> bool:
        """Whether it is due at the same times as the other one."""
        return (self.every, self.hour, self.time_zone) == (other.every, other.hour, other.time_zone)

    def next_times(self, after: datetime, count: int) -> list[datetime]:
        """The next instants at which it is due, in UTC; none if it is only sent by hand."""
        if self.every is ReportEvery.NEVER:
            return []
        return list(islice(cron.parse(f"0 {self.hour} {_DAYS[self.every]}").after(after, self.zone), count))

    def due_at(self, now: datetime) -> datetime | None:
        """The last instant up to now at which it was due; None if it is only sent by hand."""
        if self.every is ReportEvery.NEVER:
            return None
        return cron.parse(f"0 {self.hour} {_DAYS[self.every]}").latest(now, self.zone)

    def span(self, at: datetime) -> ReportSpan:
        """The last whole period at this instant."""
        end = _first_day(at.astimezone(self.zone).date(), self.period)
        begin = _first_day(end - timedelta(days=1), self.period)
        before = _first_day(begin - timedelta(days=1), self.period)
        return ReportSpan(*(_midnight(day, self.zone) for day in (begin, end, before)))


def _first_day(day: date, period: ReportPeriod) -> date:
    if period is ReportPeriod.MONTH:
        return day.replace(day=1)
    return day - timedelta(days=day.weekday() if period is ReportPeriod.WEEK else 0)


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    """The begin of a day, in UTC. In zones with half hours the whole hour before: measures have whole hours."""
    at = datetime.combine(day, time(), zone).astimezone(UTC)
    return at - (at - _EPOCH) % _HOUR
