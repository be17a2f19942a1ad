"""Run times of jobs, from completed jobs of the same person, kind and queue that ran the same commands.

Quantiles, or None. Jobs with other commands say nothing: five tests of a few seconds do not predict a long training.
"""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from hekla.apps.jobs import selectors
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job

ENOUGH = 5
"""With fewer jobs, nothing is predicted."""
_NEWEST = 2000
"""How many completed jobs of a cluster are read."""
_OF_A_KEY = 50
_Key = tuple[int, str, int, str]


class RuntimeAssumption(Enum):
    """How long jobs run, as a quantile of the jobs before them: briefly, usually long, or long.

    Between the first and the last lie nine of ten jobs. Briefly also means: a job whose run time is unknown ends now.
    """

    SHORT = 0.05
    USUAL = 0.5
    LONG = 0.95


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Run times in seconds, sorted, by owner, kind, queue and commands."""

    seconds: Mapping[_Key, list[float]] = field(default_factory=dict)

    def end(self, job: Job, began: datetime, now: datetime, view: RuntimeAssumption) -> datetime | None:
        """The end of a job under this assumption, at most its deadline. None if unknown."""
        by_history = self._by_history(job, began, now, view)
        if by_history is None and view is RuntimeAssumption.SHORT:
            return now
        limit = job.deadline_at or _limit(job, began)
        ends = [end for end in (by_history, limit) if end is not None]
        return min(ends, default=None)

    def cases(self, job: Job) -> int:
        """How many earlier jobs predict its end; 0 if they are too few."""
        known = len(self._known(job))
        return known if known >= ENOUGH else 0

    def _by_history(self, job: Job, began: datetime, now: datetime, view: RuntimeAssumption) -> datetime | None:
        """From the jobs that ran longer than this one has run so far."""
        known = self._known(job)
        longer = known[bisect_right(known, (now - began).total_seconds()) :]
        if len(known) < ENOUGH or not longer:
            return None
        return began + timedelta(seconds=_quantile(longer, view.value))

    def _known(self, job: Job) -> list[float]:
        return self.seconds.get(key_of(job), [])


def key_of(job: Job) -> _Key:
    """What jobs of equal run times have in common."""
    return job.owner_id, job.kind, job.queue_id, _commands(job.spec.get("tasks", ()))


def _commands(tasks: Iterable[Mapping[str, Any]]) -> str:
    """The commands and images of the tasks, in a form that can be compared."""
    return json.dumps([[task.get(name) for name in ("name", "command", "args", "image")] for task in tasks])


def of(cluster_id: int) -> RunTimes:
    """The run times of the newest completed jobs of a cluster."""
    found: dict[_Key, list[float]] = defaultdict(list)
    for owner, kind, queue, tasks, began, ended in selectors.run_times(cluster_id, limit=_NEWEST):
        seconds = found[owner, kind, queue, _commands(tasks or ())]
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
