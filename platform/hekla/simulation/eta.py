"""When jobs that wait would start: the course of the cluster while those that run end as such jobs did before.

Nobody knows who will submit what meanwhile; how well such times held is counted afterwards.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hekla.simulation.runtimes import RuntimeAssumption, RunTimes
from hekla.simulation.simulator import Course, started_at

_MAX_STEPS = 24
_COARSENESS = 0.15
"""Ends that are as close to each other as this part of the time until then come together: so a walk of few steps goes
far, and is no less exact than what is known of how long jobs run."""


@dataclass(frozen=True, slots=True)
class Start:
    """When it starts by one view, and which jobs (by uid) end just before."""

    at: datetime
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Eta:
    """From when until when a job will probably start; `after`: those for whose end it waits."""

    earliest: datetime
    latest: datetime
    after: tuple[str, ...] = ()


def between(short: Start | None, long: Start | None) -> Eta | None:
    """Both views together; None where one of them does not see it start."""
    if short is None or long is None:
        return None
    return Eta(min(short.at, long.at), max(short.at, long.at), long.after)


def starts(course: Course, wanted: Collection[str], run_times: RunTimes, view: RuntimeAssumption) -> dict[str, Start]:
    """When each of these jobs starts by this view; those that nobody sees start are left out."""
    walk, found = _Walk(course, run_times, view), dict[str, Start]()
    left = set(wanted)
    course.settle()
    for _ in range(_MAX_STEPS):
        started = {uid for uid in left if course.has_started(uid)}
        found |= dict.fromkeys(started, Start(course.now, tuple(walk.ended)))
        left -= started
        if not left or not walk.step():
            break
    return found


class _Walk:
    """From end to end."""

    def __init__(self, course: Course, run_times: RunTimes, view: RuntimeAssumption) -> None:
        self._course, self._run_times, self._view, self._from = course, run_times, view, course.now
        self._ends: dict[str, datetime | None] = {}
        self.ended: Sequence[str] = ()

    def step(self) -> bool:
        """Let those end that are next. False: of nobody it is known when it ends."""
        self._ends = {uid: self._ends.get(uid) or self._end(uid) for uid in self._course.started()}
        known = {uid: max(end, self._course.now) for uid, end in self._ends.items() if end is not None}
        if not known:
            return False
        at = min(known.values())
        at += max(timedelta(seconds=1), _COARSENESS * (at - self._from))
        self.ended = [uid for uid, end in known.items() if end <= at]
        self._course.end(self.ended, max(known[uid] for uid in self.ended))
        self._course.settle()
        return True

    def _end(self, uid: str) -> datetime | None:
        job, row = self._course.job(uid), self._course.row(uid)
        began = started_at(job) if job else None
        return self._run_times.end(row, began, self._course.now, self._view) if row and began else None
