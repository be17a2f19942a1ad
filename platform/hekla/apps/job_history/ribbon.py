"""Why a job waited, over time: one cell per reason, merged while the reason did not change.

A ribbon has at most `MOST_CELLS` cells: the oldest are merged into one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import explanations, labels
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.selectors import MOST_OF_COURSE
from hekla.domain.phases import GangPhase, JobPhase

MOST_CELLS = 40
_WHOLE, _LEAST_WIDTH, _WIDTH_AT_WORK = 1000.0, 12.0, 18.0
_QUIET = timedelta(seconds=2)
"""Shorter waits before the scheduler gives a reason get no cell."""
_SHORT = timedelta(minutes=1)
"""A job that waited for less, without a reason, has no ribbon."""
UNSAID, EARLIER, STARTING, RUNNING, STOPPED = "unsaid", "earlier", "starting", "running", "stopped"
_AT_WORK = frozenset({STARTING, RUNNING, STOPPED})
_KIND_OF_PHASE = {
    JobPhase.PENDING: UNSAID,
    JobPhase.RESTARTING: UNSAID,
    JobPhase.RUNNING: RUNNING,
    JobPhase.COMPLETING: RUNNING,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A period with one reason. `kind`: the engine's cause of the wait, or what the job did instead.

    `is_admitted`: its queue had admitted the job already, so it waited only for nodes.
    """

    begin: datetime
    end: datetime
    kind: str
    is_admitted: bool = False
    is_open: bool = False
    reason: dict[str, Any] = field(default_factory=dict)
    merged: int = 1
    start: float = 0.0
    width: float = 0.0

    @property
    def seconds(self) -> float:
        """The length of the period, until now if it is open."""
        return (self.end - self.begin).total_seconds()

    @property
    def is_wait(self) -> bool:
        """Whether the job waited to run."""
        return self.kind not in _AT_WORK

    @property
    def key(self) -> tuple[object, ...]:
        """Adjacent cells with equal keys are merged."""
        return self.kind, self.is_admitted, self.reason.get("plugin"), self.reason.get("code")

    @property
    def sentence(self) -> str:
        """The reason, with the numbers in the log."""
        if self.merged > 1:
            return ngettext("%(n)d earlier period.", "%(n)d earlier periods.", self.merged) % {"n": self.merged}
        return labels.reason(self.reason) if self.reason else _SENTENCES[self.kind]()

    @property
    def words(self) -> str:
        """The duration, and the sentence."""
        return f"{labels.duration(self.seconds)}: {self.sentence}"


_SENTENCES = {
    UNSAID: lambda: _("The scheduler gave no reason."),
    EARLIER: lambda: _("Earlier periods are not shown."),
    STARTING: lambda: _("Its pods were allocated and starting."),
    RUNNING: lambda: _("Running."),
    STOPPED: lambda: _("Stopped."),
}


@dataclass(frozen=True, slots=True)
class Ribbon:
    """The cells of a job, oldest first, and its current state in a sentence."""

    cells: Sequence[Cell]
    sentence: str

    @property
    def waited_seconds(self) -> float:
        """The total time of waiting."""
        return sum(cell.seconds for cell in self.cells if cell.is_wait)

    @property
    def says_something(self) -> bool:
        """Whether the job waits, or waited with a reason, or for more than a minute."""
        if any(cell.is_wait and (cell.is_open or cell.kind != UNSAID) for cell in self.cells):
            return True
        return self.waited_seconds > _SHORT.total_seconds()


def of(job: Job, course: Sequence[LoggedEvent], *, now: datetime) -> Ribbon:
    """The ribbon of a job. `course`: its events, as `selectors.course` returns them."""
    cells = _bounded(_merged(_pieces(job, course, now)))
    return Ribbon(list(_laid_out(cells)), _now(job, cells))


def _pieces(job: Job, events: Sequence[LoggedEvent], now: datetime) -> Iterator[Cell]:
    """The cells from event to event; the current reason is on the job's row."""
    first = EARLIER if len(events) == MOST_OF_COURSE else UNSAID
    cell = Cell(job.submitted_at, job.submitted_at, first)
    for event in events:
        yield replace(cell, end=event.at)
        cell = _after(replace(cell, begin=event.at), event)
    if job.is_final:
        return
    if job.waiting and cell.is_wait:
        cell = replace(cell, kind=str(job.waiting[0]["cause"]), reason=job.waiting[0])
    yield replace(cell, end=max(now, cell.begin), is_open=True)


def _after(cell: Cell, event: LoggedEvent) -> Cell:
    """The cell after this event."""
    if event.kind == "JobUnschedulable":
        reason = event.payload["reasons"][0] if event.payload["reasons"] else {}
        return replace(cell, kind=str(reason.get("cause", UNSAID)), reason=reason) if cell.is_wait else cell
    new = event.payload["new"]
    if event.kind == "JobPhaseChanged":
        return replace(cell, kind=_KIND_OF_PHASE.get(JobPhase(new), STOPPED), reason={})
    inside = new != GangPhase.PENDING
    if cell.is_wait or cell.kind == STARTING:
        kind = STARTING if new == GangPhase.RUNNING else UNSAID
        return replace(cell, kind=kind, reason={}, is_admitted=inside)
    return replace(cell, is_admitted=inside)


def _merged(pieces: Iterable[Cell]) -> list[Cell]:
    """Merge adjacent cells of equal key, with the newest numbers; a short wait without reason joins the next cell."""
    found: list[Cell] = []
    for piece in pieces:
        if piece.begin == piece.end and not piece.is_open:
            continue
        cell = piece
        if found and _is_breath(found[-1]) and cell.is_wait:
            cell = replace(cell, begin=found.pop().begin)
        if found and found[-1].key == cell.key:
            cell = replace(cell, begin=found.pop().begin)
        found.append(cell)
    return found


def _is_breath(cell: Cell) -> bool:
    return cell.kind == UNSAID and cell.end - cell.begin < _QUIET


def _bounded(cells: list[Cell]) -> list[Cell]:
    """At most `MOST_CELLS`: the oldest become one, with the kind that took most of their time."""
    if len(cells) <= MOST_CELLS:
        return cells
    old, new = cells[: len(cells) - MOST_CELLS + 1], cells[len(cells) - MOST_CELLS + 1 :]
    took: dict[str, float] = defaultdict(float)
    for cell in old:
        took[cell.kind] += cell.seconds
    kind = max(took, key=lambda name: took[name])
    return [Cell(old[0].begin, old[-1].end, kind, merged=len(old)), *new]


def _laid_out(cells: Sequence[Cell]) -> Iterator[Cell]:
    """The cells with positions in thousandths: waits in proportion to their length, others with a fixed width."""
    waited = sum(cell.seconds for cell in cells if cell.is_wait)
    fixed = [_LEAST_WIDTH if cell.is_wait else _WIDTH_AT_WORK for cell in cells]
    left, start = _WHOLE - sum(fixed), 0.0
    for cell, least in zip(cells, fixed, strict=True):
        share = cell.seconds / waited if cell.is_wait and waited else 0.0
        width = least + share * left
        yield replace(cell, start=round(start, 1), width=round(width, 1))
        start += width


def _now(job: Job, cells: Sequence[Cell]) -> str:
    """The current state in one sentence."""
    if why := explanations.first(job):
        return why
    if cells and cells[-1].is_open and cells[-1].is_wait:
        admitted = cells[-1].is_admitted
        return (
            _("Admitted. Its pods are being allocated.") if admitted else _("The scheduler has not given a reason yet.")
        )
    waited = labels.duration(sum(cell.seconds for cell in cells if cell.is_wait))
    return _("Pending for %(long)s in total. Not pending now.") % {"long": waited}
