"""The template context of demonstration pages, shared by the full page and its live parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.demonstrations import catalogue, selectors
from hekla.apps.demonstrations.scenes import Demonstration
from hekla.apps.job_history import history
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.pages.demonstrations import rooms
from hekla.pages.demonstrations.rooms import DrawnArea
from hekla.pages.demonstrations.run_views import Bar, RunView, run_view

_TIMELINE_KINDS = ("JobSubmitted", "JobPhaseChanged", "JobUnschedulable", "PodEvicted")


@dataclass(frozen=True, slots=True)
class JobTimelineEntry:
    """An entry of the timeline, with its job."""

    job: Job
    line: history.TimelineEntry


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the comparison: the newest run with the whole policy, or without a part of it.

    `view`: None if there was no run yet; then the nodes are empty.
    """

    title: str
    without: str
    view: RunView | None
    areas: Sequence[DrawnArea]
    bars: Sequence[Bar]


def detail(name: str, user: User) -> dict[str, Any]:
    """Everything about a demonstration and its newest runs. Raises NotFound."""
    demonstration = catalogue.get(name)
    variants = ["", *([demonstration.without.name] if demonstration.without else [])]
    runs = {variant: selectors.latest(name, user, variant) for variant in variants}
    views = {variant: run_view(demonstration, run) for variant, run in runs.items() if run}
    newest = max(views.values(), key=lambda view: view.run.pk, default=None)
    seconds = max((view.seconds for view in views.values()), default=1.0)
    return {
        "demonstration": demonstration,
        "newest": newest,
        "run": newest.run if newest else None,
        "sides": [_side(demonstration, variant, views.get(variant), seconds) for variant in variants],
        "axis_seconds": round(seconds),
        "timeline": timeline([view.job for view in newest.views]) if newest else [],
        "coming": len(demonstration.acts) - len(newest.views) if newest and newest.run.ended_at is None else 0,
        "difference": difference(demonstration, views.get(""), views.get(variants[-1]) if len(variants) > 1 else None),
    }


def _side(demonstration: Demonstration, variant: str, view: RunView | None, seconds: float) -> Side:
    areas = view.areas if view else rooms.areas(demonstration.stage, [])
    return Side(_title(demonstration, variant), variant, view, areas, view.bars(seconds) if view else ())


def _title(demonstration: Demonstration, variant: str) -> str:
    if demonstration.without is None:
        return _("Nodes")
    if not variant:
        return _("With %(name)s") % {"name": demonstration.without.name}
    if demonstration.instead:
        return _("With %(other)s instead of %(name)s") % {"other": demonstration.instead, "name": variant}
    return _("Without %(name)s") % {"name": variant}


def difference(demonstration: Demonstration, whole: RunView | None, part: RunView | None) -> str:
    """One sentence about what the newest runs showed, from what happened in them; empty before any has ended."""
    name = demonstration.without.name if demonstration.without else ""
    first, second = (view.found.words if view and view.found else "" for view in (whole, part))
    if first and second:
        sentence = _("With %(name)s, %(first)s; without it, %(second)s.")
    elif second:
        sentence = _("Without %(name)s, %(second)s.")
    elif first and name:
        sentence = _("With %(name)s, %(first)s.")
    elif first:
        sentence = _("In this run, %(first)s.")
    else:
        return ""
    return sentence % {"name": name, "first": first, "second": second}


def timeline(about: Sequence[Job]) -> list[JobTimelineEntry]:
    """The newest events of these jobs in one timeline, newest first."""
    events = {job: jobs.newest_of_kinds(job, _TIMELINE_KINDS) for job in about}
    entries = [JobTimelineEntry(job, line) for job, own in events.items() for line in history.lines(own)]
    return sorted(entries, key=lambda entry: -entry.line.number)
