"""Run times of jobs, from completed jobs of the same person, kind and queue that ran the same commands.

Quantiles, or None. Jobs with other commands say nothing: five tests of a few seconds do not predict a long training.
Jobs of one batch are the exception: their commands differ by parameters only, so the first ones predict the others.
"""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, TypeVar

from hekla.apps.batches import selectors as batches
from hekla.apps.jobs import selectors
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job

ENOUGH = 5
"""With fewer jobs, nothing is predicted."""
_NEWEST = 2000
"""How many completed jobs of a cluster are read."""
_OF_A_KEY = 50
_Key = tuple[int, str, int, str]
_BatchKey = tuple[int, str]
_K = TypeVar("_K")


class RuntimeAssumption(Enum):
    """How long jobs run, as a quantile of the jobs before them: briefly, usually long, or long.

    Between the first and the last lie nine of ten jobs. Briefly also means: a job whose run time is unknown ends now.
    """

    SHORT = 0.05
    USUAL = 0.5
    LONG = 0.95


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Run times in seconds, sorted: by owner, kind, queue and commands, and by batch and images.

    `batches`: the batch of each job (row ids), as far as it has one.
    """

    seconds: Mapping[_Key, list[float]] = field(default_factory=dict)
    of_batches: Mapping[_BatchKey, list[float]] = field(default_factory=dict)
    batches: Mapping[int, int] = field(default_factory=dict)

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
        known = self.seconds.get(key_of(job), [])
        batch = self.batches.get(job.pk)
        if batch is None or len(known) >= ENOUGH:
            return known
        return self.of_batches.get((batch, _images(job.spec.get("tasks", ()))), known)


def key_of(job: Job) -> _Key:
    """What jobs of equal run times have in common."""
    return job.owner_id, job.kind, job.queue_id, _commands(job.spec.get("tasks", ()))


def _commands(tasks: Iterable[Mapping[str, Any]]) -> str:
    """The commands and images of the tasks, in a form that can be compared."""
    return json.dumps([[task.get(name) for name in ("name", "command", "args", "image")] for task in tasks])


def _images(tasks: Iterable[Mapping[str, Any]]) -> str:
    """The names and images of the tasks: what jobs of a batch have in common whatever their parameters."""
    return json.dumps([[task.get(name) for name in ("name", "image")] for task in tasks])


def of(cluster_id: int) -> RunTimes:
    """The run times of the newest completed jobs of a cluster."""
    found: dict[_Key, list[float]] = defaultdict(list)
    of_batches: dict[_BatchKey, list[float]] = defaultdict(list)
    ended_jobs = selectors.run_times(cluster_id, limit=_NEWEST)
    members = batches.memberships(cluster_id, [row[0] for row in ended_jobs])
    for job, owner, kind, queue, tasks, began, ended in ended_jobs:
        alike = [found[owner, kind, queue, _commands(tasks or ())]]
        if job in members:
            alike.append(of_batches[members[job], _images(tasks or ())])
        for seconds in alike:
            if len(seconds) < _OF_A_KEY:
                seconds.append((ended - began).total_seconds())
    return RunTimes(_in_order(found), _in_order(of_batches), members)


def _in_order(found: Mapping[_K, list[float]]) -> dict[_K, list[float]]:
    return {key: sorted(seconds) for key, seconds in found.items()}


def _limit(job: Job, began: datetime) -> datetime | None:
    seconds = spec_of(job).active_deadline_seconds
    return None if seconds is None else began + timedelta(seconds=seconds)


def _quantile(ordered: list[float], part: float) -> float:
    """Interpolated between the two nearest values."""
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
