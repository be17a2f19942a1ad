"""When a job waited, and why: periods, each with the first cause that the engine named."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import explanations, labels
from hekla.apps.jobs.models import Job
from hekla.domain.phases import JobPhase

_KINDS = ("JobUnschedulable", "JobPhaseChanged")
"""The events that begin or end a wait."""
_AT_REST = {JobPhase.PENDING, JobPhase.RESTARTING}


@dataclass(frozen=True, slots=True)
class WaitInterval:
    """A period of waiting. `end` None: until now. `cause` is empty if unknown."""

    begin: datetime
    end: datetime | None
    cause: str = ""
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class PhaseInterval:
    """A period in one phase. `end` None: until now."""

    begin: datetime
    end: datetime | None
    phase: str


def stretches(job: Job, events: Iterable[LoggedEvent]) -> list[WaitInterval]:
    """The waits of a job, oldest first. The current reason is on the row: the log has only changes of reason."""
    found: list[WaitInterval] = []
    for event in events:
        if event.kind not in _KINDS:
            continue
        if found and found[-1].end is None:
            found[-1] = _ended(found[-1], event.at)
        if event.kind == "JobUnschedulable" and event.payload["reasons"]:
            _add(found, _stretch(event.at, event.payload["reasons"][0]))
    if explanations.is_waiting(job) and not (found and found[-1].end is None):
        begin = max([job.submitted_at, *(stretch.end for stretch in found[-1:] if stretch.end)])
        _add(found, _stretch(begin, job.waiting[0]))
    return found


def stays(job: Job, events: Iterable[LoggedEvent]) -> list[PhaseInterval]:
    """The phases of the job, oldest first; the last one has no end, even if it is final."""
    found = [PhaseInterval(job.submitted_at, None, JobPhase.PENDING.value)]
    for event in events:
        if event.kind == "JobPhaseChanged":
            found[-1] = PhaseInterval(found[-1].begin, event.at, found[-1].phase)
            found.append(PhaseInterval(event.at, None, event.payload["new"]))
    return found


def cut(begin: datetime, end: datetime, waited: Sequence[WaitInterval]) -> Iterator[WaitInterval]:
    """The time from `begin` to `end` in pieces, each with the cause of the wait, if known."""
    at = begin
    for stretch in waited:
        piece_begin, piece_end = max(stretch.begin, at), min(stretch.end or end, end)
        if piece_end <= piece_begin:
            continue
        if piece_begin > at:
            yield WaitInterval(at, piece_begin)
        yield WaitInterval(piece_begin, piece_end, stretch.cause, stretch.sentence)
        at = piece_end
    if at < end:
        yield WaitInterval(at, end)


def is_at_rest(stay: PhaseInterval) -> bool:
    """Whether the job waited to run in this phase."""
    return stay.phase in _AT_REST


def _stretch(begin: datetime, reason: dict[str, Any]) -> WaitInterval:
    return WaitInterval(begin, None, str(reason.get("cause", "")), labels.reason(reason))


def _ended(stretch: WaitInterval, at: datetime) -> WaitInterval:
    return WaitInterval(stretch.begin, at, stretch.cause, stretch.sentence)


def _add(found: list[WaitInterval], new: WaitInterval) -> None:
    """Append the period, or extend the last one if the cause is the same, with the newest sentence."""
    if found and found[-1].cause == new.cause and found[-1].end == new.begin:
        found[-1] = WaitInterval(found[-1].begin, new.end, new.cause, new.sentence)
    else:
        found.append(new)
