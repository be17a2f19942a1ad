"""The contents of the schedule pages, for the page itself and for its live parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.accounts.models import User
from hekla.apps.schedules import selectors
from hekla.apps.schedules.models import Schedule, ScheduleRun
from hekla.domain import cron, formats
from hekla.domain.schedule_runs import SkipReason
from hekla.domain.schedules import MAX_COUNTED, ScheduleSpec

MOST_RUNS = 100
_NEXT = 5


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule in the list."""

    schedule: Schedule
    cron: str
    time_zone: str
    last: ScheduleRun | None
    why: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in the history of a schedule; `why`: why no job started, in a sentence."""

    run: ScheduleRun
    why: str


@dataclass(frozen=True, slots=True)
class NextRun:
    """A future due time; `wall`: in the time zone of the schedule."""

    at: datetime
    wall: str


def rows(schedules: Sequence[Schedule]) -> list[ScheduleRow]:
    """These schedules, each with the outcome of its last run."""
    last = selectors.last_runs(schedules)
    return [_row(schedule, last.get(schedule.pk)) for schedule in schedules]


def _row(schedule: Schedule, last: ScheduleRun | None) -> ScheduleRow:
    """Its specification is not parsed: the list needs two fields, and the job in it takes a millisecond."""
    time_zone = schedule.spec.get("time_zone", ScheduleSpec.model_fields["time_zone"].default)
    return ScheduleRow(schedule, schedule.spec["cron"], time_zone, last, why(last) if last else "")


def run_rows(runs: Sequence[ScheduleRun]) -> list[RunRow]:
    """These runs, each with the reason if no job started."""
    return [RunRow(run, why(run)) for run in runs]


def detail(schedule: Schedule, user: User, *, now: datetime) -> dict[str, Any]:
    """Everything that the page of a schedule shows, except its runs."""
    spec = selectors.spec_of(schedule)
    return {
        "schedule": schedule,
        "spec": spec,
        "coming": [] if schedule.is_suspended else coming(spec, now),
        "manifest": formats.dump(spec.job.model_copy(update={"name": spec.name})),
        "may_act": selectors.may_act(user, schedule),
        "may_start": selectors.may_start(user, schedule),
    }


def coming(spec: ScheduleSpec, now: datetime) -> list[NextRun]:
    """The next due times."""
    zone = cron.zone(spec.time_zone)
    return [
        NextRun(moment, moment.astimezone(zone).strftime("%Y-%m-%d %H:%M %Z")) for moment in spec.next_times(now, _NEXT)
    ]


def why(run: ScheduleRun) -> str:
    """Why no job started at a due time, in a sentence; empty if one did."""
    if run.outcome == ScheduleRun.Outcome.MISSED:
        return _missed(run)
    sentences = {
        SkipReason.STILL_RUNNING: _(
            "The earlier run had not finished (%s), and this schedule does not allow two runs at the same time."
        )
        % run.message,
        SkipReason.TOO_LATE: _("The starting deadline had passed, for example because the console was not running."),
        SkipReason.REFUSED: _("The job was rejected: %s") % run.message,
    }
    return sentences[SkipReason(run.reason)] if run.reason else ""


def _missed(run: ScheduleRun) -> str:
    if run.count > MAX_COUNTED:
        return (
            _("More than %d runs were missed while the console was not running. They are not repeated.") % MAX_COUNTED
        )
    sentence = ngettext(
        "%d run was missed while the console was not running. It is not repeated.",
        "%d runs were missed while the console was not running. They are not repeated.",
        run.count,
    )
    return sentence % run.count
