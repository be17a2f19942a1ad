"""Events of reports. The subject is the report."""

from typing import Annotated

from pydantic import Field

from hekla.domain.events.base import Changes, Event, Name

_Count = Annotated[int, Field(ge=0)]


class OverviewArranged(Event):
    """A person chose the figures of their overview, in this order; none: the usual ones."""

    figures: Annotated[tuple[Name, ...], Field(max_length=32)] = ()


class ReportCreated(Event):
    name: Name


class ReportChanged(Event):
    name: Name
    changes: Changes


class ReportDeleted(Event):
    name: Name


class ReportDispatched(Event):
    """Its mails were queued. `recipients`: people who get it. `left_out`: people who may not see what it shows."""

    name: Name
    recipients: _Count
    left_out: _Count


class ReportStopped(Event):
    """It is not sent any more. `reason`: of `domain.reports.ReportObstacle`."""

    name: Name
    reason: Name
