"""A run as its page shows it: the nodes as a drawing, the jobs as bars, and what was found."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.apps.demonstrations.models import DemoRun
from hekla.apps.demonstrations.scenes import Demonstration
from hekla.lib import clock
from hekla.pages.demonstrations import moments, outcomes, rooms
from hekla.pages.demonstrations.job_views import JobView, job_views
from hekla.pages.demonstrations.measures import Evidence, RunResult, finding
from hekla.pages.demonstrations.rooms import DrawnArea


@dataclass(frozen=True, slots=True)
class Bar:
    """A job on the time axis, in per cent of its length: it waits from `submitted`, and runs from `started`.

    `name`: as in the demonstration.
    """

    number: int
    name: str
    submitted: float
    started: float
    ended: float
    words: str

    @property
    def waiting(self) -> float:
        return self.started - self.submitted

    @property
    def running(self) -> float:
        return self.ended - self.started


@dataclass(frozen=True, slots=True)
class RunView:
    """A run. `at_seconds`: the instant of the drawing since its start; None: now. `found`: once it has ended."""

    demonstration: Demonstration
    run: DemoRun
    views: Sequence[JobView]
    areas: Sequence[DrawnArea]
    at_seconds: int | None
    found: RunResult | None
    is_as_announced: bool

    @property
    def seconds(self) -> float:
        """How long it has run, at least one second."""
        until = self.run.ended_at or clock.now()
        return max((until - self.run.started_at).total_seconds(), 1.0)

    def bars(self, seconds: float) -> list[Bar]:
        """Its jobs on an axis of this length."""
        return [self._bar(view, seconds) for view in self.views]

    def _bar(self, view: JobView, seconds: float) -> Bar:
        job, until = view.job, self.run.ended_at or clock.now()
        instants = (job.submitted_at, job.started_at or until, job.finished_at or until)
        begin, start, end = ((at - self.run.started_at).total_seconds() for at in instants)
        shares = [100 * min(at / seconds, 1.0) for at in (begin, start, end)]
        words = _("%(start)s–%(end)s s") % {"start": round(start), "end": round(end)} if job.started_at else _("waits")
        name = self.demonstration.acts[view.number - 1].name
        return Bar(view.number, name, shares[0], shares[1], shares[2], words)


def run_view(demonstration: Demonstration, run: DemoRun) -> RunView:
    """How the run looks now, or, if it has ended, what it showed."""
    views = job_views(run)
    at = moments.best(demonstration, views) if run.ended_at else None
    held = moments.held_at(views, at) if at or not run.ended_at else []
    found = finding(Evidence(demonstration, views, held)) if run.ended_at else None
    expected = demonstration.expected(run.without)
    return RunView(
        demonstration=demonstration,
        run=run,
        views=views,
        areas=rooms.areas(demonstration.stage, held),
        at_seconds=round((at - run.started_at).total_seconds()) if at else None,
        found=found,
        is_as_announced=outcomes.is_as_announced(demonstration, expected, views, found),
    )
