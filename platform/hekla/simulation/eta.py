"""Predicts when pending jobs start: simulates the cluster while running jobs end as similar jobs did before.

Future submissions are unknown, so a range ends later than the simulation. The accuracy of the predictions is measured
afterwards.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hekla.simulation.runtimes import RuntimeAssumption, RunTimes
from hekla.simulation.simulator import Simulator, started_at

_MAX_STEPS = 24
_COARSENESS = 0.15
"""Ends that are this close together, relative to the time until then, are simulated as one.

So a few steps reach far, and the result is no less exact than the known run times.
"""


_LATER_JOBS, _LATER_AT_LEAST = 0.3, timedelta(minutes=5)
"""How much later a start may be because of jobs that are submitted later, found by `hekla bench explanations`: a part
of the time until then, and a fixed time.
"""


@dataclass(frozen=True, slots=True)
class Start:
    """The start under one assumption, and the jobs (uids) that end just before.

    `cases`: how many earlier jobs, at least, predict the end of each of the jobs that end until then; 0 if only a time
    limit bounds one of them.
    """

    at: datetime
    after: tuple[str, ...] = ()
    cases: int = 0


@dataclass(frozen=True, slots=True)
class Eta:
    """The range in which a job will probably start; `after`: the jobs that must end before.

    `cases`: as in `Start`. With 0, `latest` is certain to be late enough, and `earliest` means little.
    """

    earliest: datetime
    latest: datetime
    after: tuple[str, ...] = ()
    cases: int = 0


def between(short: Start | None, long: Start | None, now: datetime) -> Eta | None:
    """The range from both assumptions; None if the job does not start under one of them.

    It is at least as wide as the simulation is coarse: jobs that all ran equally long do not make the start exact. It
    leaves room for jobs that are submitted later, unless time limits are the only basis.
    """
    if short is None or long is None:
        return None
    first, last = sorted((short.at, long.at))
    spare = _COARSENESS * (last - now)
    latest = max(last, first + spare)
    if long.cases:
        latest += _LATER_JOBS * (latest - now) + _LATER_AT_LEAST
    return Eta(min(first, last - spare), latest, long.after, long.cases)


HasStarted = Callable[[Simulator, str], bool]


def ranges(
    simulator: Callable[[], Simulator],
    wanted: Collection[str],
    run_times: RunTimes,
    now: datetime,
    has_started: HasStarted = Simulator.has_started,
) -> dict[str, Eta]:
    """The range of the start of each of these jobs; jobs without a prediction are left out.

    `simulator`: makes a simulation that starts now. `has_started`: whether a job (uid) has what is waited for.
    """
    views = RuntimeAssumption.SHORT, RuntimeAssumption.LONG
    short, long = (starts(simulator(), wanted, run_times, view, has_started) for view in views)
    found = {uid: between(short.get(uid), long.get(uid), now) for uid in wanted}
    return {uid: interval for uid, interval in found.items() if interval}


def starts(
    simulator: Simulator,
    wanted: Collection[str],
    run_times: RunTimes,
    view: RuntimeAssumption,
    has_started: HasStarted = Simulator.has_started,
) -> dict[str, Start]:
    """The start of each of these jobs under this assumption; jobs without a predicted start are left out."""
    walk, found = _Walk(simulator, run_times, view), dict[str, Start]()
    left = set(wanted)
    simulator.settle()
    for _ in range(_MAX_STEPS):
        started = {uid for uid in left if has_started(simulator, uid)}
        found |= dict.fromkeys(started, Start(simulator.now, tuple(walk.ended), walk.cases or 0))
        left -= started
        if not left or not walk.step():
            break
    return found


class _Walk:
    """Steps from one end of jobs to the next."""

    def __init__(self, simulator: Simulator, run_times: RunTimes, view: RuntimeAssumption) -> None:
        self._course, self._run_times, self._view, self._from = simulator, run_times, view, simulator.now
        self._ends: dict[str, datetime | None] = {}
        self.ended: Sequence[str] = ()
        self.cases: int | None = None
        """The fewest earlier jobs that predicted the end of a job so far; None before the first end."""

    def step(self) -> bool:
        """Let the next jobs end. False: no end is known."""
        self._ends = {uid: self._ends[uid] if uid in self._ends else self._end(uid) for uid in self._course.started()}
        known = {uid: max(end, self._course.now) for uid, end in self._ends.items() if end is not None}
        if not known:
            return False
        at = min(known.values())
        at += max(timedelta(seconds=1), _COARSENESS * (at - self._from))
        self.ended = [uid for uid, end in known.items() if end <= at]
        self._count_cases(self.ended)
        self._course.end(self.ended, max(known[uid] for uid in self.ended))
        self._course.settle()
        return True

    def _count_cases(self, uids: Sequence[str]) -> None:
        rows = [row for uid in uids if (row := self._course.row(uid))]
        found = [self._run_times.cases(row) for row in rows]
        self.cases = min(found if self.cases is None else [self.cases, *found], default=self.cases)

    def _end(self, uid: str) -> datetime | None:
        job, row = self._course.job(uid), self._course.row(uid)
        began = started_at(job) if job else None
        return self._run_times.end(row, began, self._course.now, self._view) if row and began else None
