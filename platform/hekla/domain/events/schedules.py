"""Events of schedules. The subject is the schedule."""

from datetime import datetime

from hekla.domain.events.base import Changes, Event, Message, Name


class ScheduleCreated(Event):
    name: Name
    cron: Name
    time_zone: Name = "UTC"


class ScheduleChanged(Event):
    name: Name
    changes: Changes


class ScheduleSuspended(Event):
    name: Name


class ScheduleResumed(Event):
    name: Name


class ScheduleDeleted(Event):
    name: Name


class ScheduleRunStarted(Event):
    """A run was started: because it was due, or by hand."""

    due_at: datetime
    job: Name
    by_hand: bool = False


class ScheduleSkipped(Event):
    """A run was due and did not start."""

    due_at: datetime
    reason: Name
    message: Message = ""


class ScheduleMissed(Event):
    """This number of runs was due while the controller was down; they are not made up for."""

    first: datetime
    last: datetime
    count: int
