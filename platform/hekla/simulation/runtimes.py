"""Run times of jobs, from completed jobs of the same person, kind and queue: quartiles, or None."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from hekla.apps.jobs import selectors
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job

ENOUGH = 5
"""With fewer jobs, nothing is predicted."""
_NEWEST = 2000
"""How many completed jobs of a cluster are read."""
_OF_A_KEY = 50
_Key = tuple[int, str, int]


class RuntimeAssumption(Enum):
    """Whether jobs run briefly, like the fastest quarter of the jobs before them, or long."""

    SHORT = 0.25
    LONG = 0.75


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Run times in seconds, sorted, by owner, kind and queue."""

    seconds: Mapping[_Key, list[float]] = field(default_factory=dict)

    def end(self, job: Job, began: datetime, now: datetime, view: RuntimeAssumption) -> datetime | None:
        """The end of a job under this assumption, at most its deadline. None if unknown."""
        by_history = self._by_history(job, began, now, view)
        limit = job.deadline_at or _limit(job, began)
        ends = [end for end in (by_history, limit) if end is not None]
        return min(ends, default=None)

    def _by_history(self, job: Job, began: datetime, now: datetime, view: RuntimeAssumption) -> datetime | None:
        """From the jobs that ran longer than this one has run so far."""
        known = self.seconds.get((job.owner_id, job.kind, job.queue_id), [])
        longer = known[bisect_right(known, (now - began).total_seconds()) :]
        if len(known) < ENOUGH or not longer:
            return None
        return began + timedelta(seconds=_quantile(longer, view.value))


def of(cluster_id: int) -> RunTimes:
    """The run times of the newest completed jobs of a cluster."""
    found: dict[_Key, list[float]] = defaultdict(list)
    for owner, kind, queue, began, ended in selectors.run_times(cluster_id, limit=_NEWEST):
        seconds = found[owner, kind, queue]
        if len(seconds) < _OF_A_KEY:
            seconds.append((ended - began).total_seconds())
    return RunTimes({key: sorted(seconds) for key, seconds in found.items()})


def _limit(job: Job, began: datetime) -> datetime | None:
    seconds = spec_of(job).active_deadline_seconds
    return None if seconds is None else began + timedelta(seconds=seconds)


def _quantile(ordered: list[float], part: float) -> float:
    """Interpolated between the two nearest values."""
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
