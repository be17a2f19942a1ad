"""Predicts when pending jobs start: simulates the cluster while running jobs end as similar jobs did before.

Future submissions are unknown. The accuracy of the predictions is measured afterwards.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hekla.simulation.runtimes import RuntimeAssumption, RunTimes
from hekla.simulation.simulator import Simulator, started_at

_MAX_STEPS = 24
_COARSENESS = 0.15
"""Ends that are this close together, relative to the time until then, are simulated as one.

So a few steps reach far, and the result is no less exact than the known run times.
"""


@dataclass(frozen=True, slots=True)
class Start:
    """The start under one assumption, and the jobs (uids) that end just before."""

    at: datetime
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Eta:
    """The range in which a job will probably start; `after`: the jobs that must end before."""

    earliest: datetime
    latest: datetime
    after: tuple[str, ...] = ()


def between(short: Start | None, long: Start | None) -> Eta | None:
    """The range from both assumptions; None if the job does not start under one of them."""
    if short is None or long is None:
        return None
    return Eta(min(short.at, long.at), max(short.at, long.at), long.after)


def starts(
    course: Simulator, wanted: Collection[str], run_times: RunTimes, view: RuntimeAssumption
) -> dict[str, Start]:
    """The start of each of these jobs under this assumption; jobs without a predicted start are left out."""
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
    """Steps from one end of jobs to the next."""

    def __init__(self, course: Simulator, run_times: RunTimes, view: RuntimeAssumption) -> None:
        self._course, self._run_times, self._view, self._from = course, run_times, view, course.now
        self._ends: dict[str, datetime | None] = {}
        self.ended: Sequence[str] = ()

    def step(self) -> bool:
        """Let the next jobs end. False: no end is known."""
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
