"""The template context of demonstration pages, shared by the full page and its live parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hekla.apps.accounts.models import User
from hekla.apps.demonstrations import catalogue, selectors
from hekla.apps.job_history import history
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.pages.demonstrations import outcomes, rooms
from hekla.pages.demonstrations.job_views import job_views

_TIMELINE_KINDS = ("JobSubmitted", "JobPhaseChanged", "JobUnschedulable", "PodEvicted")


@dataclass(frozen=True, slots=True)
class JobTimelineEntry:
    """An entry of the timeline, with its job."""

    job: Job
    line: history.TimelineEntry


def detail(name: str, user: User) -> dict[str, Any]:
    """Everything about a demonstration and its newest run. Raises NotFound."""
    demonstration = catalogue.get(name)
    run = selectors.latest(name, user)
    views = job_views(run) if run else []
    outcome, lesson = demonstration.expected(run.without if run else "")
    return {
        "demonstration": demonstration,
        "run": run,
        "views": views,
        "timeline": timeline([view.job for view in views]),
        "coming": len(demonstration.acts) - len(views) if run and run.ended_at is None else 0,
        "lesson": lesson,
        "as_announced": outcomes.is_as_announced(demonstration, outcome, views),
        "room": rooms.racks(demonstration.stage, views),
    }


def timeline(about: Sequence[Job]) -> list[JobTimelineEntry]:
    """The newest events of these jobs in one timeline, newest first."""
    events = {job: jobs.newest_of_kinds(job, _TIMELINE_KINDS) for job in about}
    entries = [JobTimelineEntry(job, line) for job, own in events.items() for line in history.lines(own)]
    return sorted(entries, key=lambda entry: -entry.line.number)
