"""Totals over the jobs of each queue before a session (`volcano-spec` §5.2)."""

from collections.abc import Hashable

import numpy as np

from hekla.domain.phases import GangPhase
from hekla.engine.columns import Vector
from hekla.engine.job_info import JobInfo

_KNOWN_AT_MOST = 10_000


class QueueTotals:
    """Totals of one queue: the number of jobs, and amounts over the dimensions of the cluster.

    `allocated`; `request`: allocated and pending; `elastic`: allocated beyond the minimums; `inqueue`: what admitted
    jobs lack of their minimum; `claimed`: the same as `overcommit` counts it, with the whole minimum of an admitted job
    and the missing part of a running one.
    """

    def __init__(self, width: int) -> None:
        self.jobs = 0
        self._rows: Vector = np.zeros((5, width))
        self.allocated, self.request, self.elastic, self.inqueue, self.claimed = self._rows

    def add(self, figures: Vector, count: int) -> None:
        """Add so many jobs with these figures, or remove one (-1)."""
        self.jobs += count
        self._rows += figures * count


class TotalsByQueue:
    """The totals of each queue with jobs; jobs are removed one by one."""

    def __init__(self, width: int) -> None:
        self.by_queue: dict[str, QueueTotals] = {}
        self._width = width
        self._known: dict[Hashable, tuple[object, Vector]] = {}

    def add(self, job: JobInfo, count: int = 1) -> None:
        """Add so many jobs like this one, in its state before a session."""
        queue, job.queue_amounts = job.group.queue, self._amounts(job)
        if queue not in self.by_queue:
            self.by_queue[queue] = QueueTotals(self._width)
        self.by_queue[queue].add(job.queue_amounts, count)

    def remove(self, job: JobInfo) -> None:
        """Remove a job that was added."""
        sums = self.by_queue[job.group.queue]
        if job.queue_amounts is not None:
            sums.add(job.queue_amounts, -1)
        if not sums.jobs:
            del self.by_queue[job.group.queue]

    def _amounts(self, job: JobInfo) -> Vector:
        """The amounts of a job. Equal jobs share their rows, and so the cached amounts."""
        is_placed = job.ready_count >= job.group.min_available
        key = (id(job.allocated), id(job.request), id(job.min_resources), job.phase, is_placed)
        known = self._known.get(key)
        if known is not None:
            return known[1]
        found = _amounts(job, is_placed=is_placed)
        if len(self._known) < _KNOWN_AT_MOST:
            self._known[key] = (job.allocated, job.request, job.min_resources), found
        return found


def _amounts(job: JobInfo, *, is_placed: bool) -> Vector:
    held, nothing = job.allocated, np.zeros_like(job.allocated)
    least = job.min_resources if job.min_resources is not None else nothing
    missing = np.maximum(least - held, 0.0)
    is_in, runs = job.phase is GangPhase.INQUEUE, job.phase is GangPhase.RUNNING
    inqueue = missing if is_in or (runs and is_placed) else nothing
    claimed = least if is_in else missing if runs else nothing
    return np.array([held, job.request, np.maximum(held - least, 0.0), inqueue, claimed])
