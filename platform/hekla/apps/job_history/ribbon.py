"""Why a job waited, cycle by cycle: what refused it when, in cells that are merged while nothing changed.

A ribbon has a bounded number of cells whatever happened: the oldest become one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.selectors import MOST_OF_COURSE
from hekla.domain.phases import GangPhase, JobPhase

MOST_CELLS = 40
_WHOLE, _LEAST_WIDTH, _WIDTH_AT_WORK = 1000.0, 12.0, 18.0
_QUIET = timedelta(seconds=2)
"""Shorter silences before the scheduler's word are not worth a cell."""
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
    """A time in which the same was in the way. `kind`: who refused (the engine's cause), or what it did instead.

    `is_admitted`: its queue had let it in already, so it waited for places only.
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
        """How long it lasted, until now if it lasts."""
        return (self.end - self.begin).total_seconds()

    @property
    def is_wait(self) -> bool:
        """Whether the job stood still, waiting to run."""
        return self.kind not in _AT_WORK

    @property
    def key(self) -> tuple[object, ...]:
        """What makes it another cell."""
        return self.kind, self.is_admitted, self.reason.get("plugin"), self.reason.get("code")

    @property
    def sentence(self) -> str:
        """What was in the way, with the numbers that the log has."""
        if self.merged > 1:
            return ngettext("%(n)d earlier period.", "%(n)d earlier periods.", self.merged) % {"n": self.merged}
        return labels.reason(self.reason) if self.reason else _SENTENCES[self.kind]()

    @property
    def words(self) -> str:
        """How long, and the sentence."""
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
    """The cells of a job, oldest first, and what is true now."""

    cells: Sequence[Cell]
    sentence: str

    @property
    def waited_seconds(self) -> float:
        """All its waiting together."""
        return sum(cell.seconds for cell in self.cells if cell.is_wait)

    @property
    def says_something(self) -> bool:
        """Whether the scheduler said why it waited, or it waited for longer than a breath, or waits."""
        if any(cell.is_wait and (cell.is_open or cell.kind != UNSAID) for cell in self.cells):
            return True
        return self.waited_seconds > _QUIET.total_seconds()


def of(job: Job, course: Sequence[LoggedEvent], *, now: datetime) -> Ribbon:
    """The ribbon of a job, from its course."""
    cells = _bounded(_merged(_pieces(job, course, now)))
    return Ribbon(list(_laid_out(cells)), _now(job, cells))


def _pieces(job: Job, events: Sequence[LoggedEvent], now: datetime) -> Iterator[Cell]:
    """From event to event; what is true now is on the row."""
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
    """What is so when this has happened."""
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
    """Neighbours that are equal are one, with the newest numbers; a short silence belongs to what follows it."""
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
    """At most so many: the oldest become one, in the colour of what took most of its time."""
    if len(cells) <= MOST_CELLS:
        return cells
    old, new = cells[: len(cells) - MOST_CELLS + 1], cells[len(cells) - MOST_CELLS + 1 :]
    took: dict[str, float] = defaultdict(float)
    for cell in old:
        took[cell.kind] += cell.seconds
    kind = max(took, key=lambda name: took[name])
    return [Cell(old[0].begin, old[-1].end, kind, merged=len(old)), *new]


def _laid_out(cells: Sequence[Cell]) -> Iterator[Cell]:
    """Each with its place in thousandths: waiting by its length; what the job did else is a mark of the same width."""
    waited = sum(cell.seconds for cell in cells if cell.is_wait)
    fixed = [_LEAST_WIDTH if cell.is_wait else _WIDTH_AT_WORK for cell in cells]
    left, start = _WHOLE - sum(fixed), 0.0
    for cell, least in zip(cells, fixed, strict=True):
        share = cell.seconds / waited if cell.is_wait and waited else 0.0
        width = least + share * left
        yield replace(cell, start=round(start, 1), width=round(width, 1))
        start += width


def _now(job: Job, cells: Sequence[Cell]) -> str:
    """One sentence that is true now."""
    if job.waiting and not job.is_final:
        return labels.reason(job.waiting[0])
    if cells and cells[-1].is_open and cells[-1].is_wait:
        admitted = cells[-1].is_admitted
        return (
            _("Admitted. Its pods are being allocated.") if admitted else _("The scheduler has not given a reason yet.")
        )
    waited = labels.duration(sum(cell.seconds for cell in cells if cell.is_wait))
    return _("Pending for %(long)s in total. Not pending now.") % {"long": waited}
