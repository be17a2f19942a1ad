"""What the jobs of a queue hold and ask for together (`volcano-spec` §5.2), as it is before a session."""

from collections.abc import Hashable

import numpy as np

from hekla.domain.phases import GangPhase
from hekla.engine.columns import Vector
from hekla.engine.gangs import Gang

_KNOWN_AT_MOST = 10_000


class Sums:
    """Of how many jobs, and their figures. Amounts over the dimensions of the cluster.

    `allocated`: what they hold. `request`: that, and what they wait for. `elastic`: what they hold beyond their
    minimums. `inqueue`: what is kept for those that were let in and hold less than their minimum. `claimed`: the same
    as the whole cluster counts it: all of the minimum of a job that was let in, the missing part of a running one.
    """

    def __init__(self, width: int) -> None:
        self.jobs = 0
        self._rows: Vector = np.zeros((5, width))
        self.allocated, self.request, self.elastic, self.inqueue, self.claimed = self._rows

    def add(self, figures: Vector, sign: int) -> None:
        """One job more, or one less."""
        self.jobs += sign
        self._rows += sign * figures


class Ledger:
    """The sums of each queue that has jobs, kept up with the jobs that come and go."""

    def __init__(self, width: int) -> None:
        self.of_queue: dict[str, Sums] = {}
        self._width = width
        self._known: dict[Hashable, tuple[object, Vector]] = {}

    def add(self, gang: Gang) -> None:
        """A job came. It must be as it is before a session."""
        if gang.job.queue not in self.of_queue:
            self.of_queue[gang.job.queue] = Sums(self._width)
        gang.figures = self._figures(gang)
        self.of_queue[gang.job.queue].add(gang.figures, 1)

    def remove(self, gang: Gang) -> None:
        """A job that came before is gone."""
        sums = self.of_queue[gang.job.queue]
        if gang.figures is not None:
            sums.add(gang.figures, -1)
        if not sums.jobs:
            del self.of_queue[gang.job.queue]

    def _figures(self, gang: Gang) -> Vector:
        """Rows of gangs that are alike are the very same objects, and so are their figures."""
        is_placed = gang.ready_count >= gang.job.min_available
        key = (id(gang.allocated), id(gang.request), id(gang.minimum), gang.phase, is_placed)
        known = self._known.get(key)
        if known is not None:
            return known[1]
        found = _figures(gang, is_placed=is_placed)
        if len(self._known) < _KNOWN_AT_MOST:
            self._known[key] = (gang.allocated, gang.request, gang.minimum), found
        return found


def _figures(gang: Gang, *, is_placed: bool) -> Vector:
    held, nothing = gang.allocated, np.zeros_like(gang.allocated)
    least = gang.minimum if gang.minimum is not None else nothing
    missing = np.maximum(least - held, 0.0)
    is_in, runs = gang.phase is GangPhase.INQUEUE, gang.phase is GangPhase.RUNNING
    inqueue = missing if is_in or (runs and is_placed) else nothing
    claimed = least if is_in else missing if runs else nothing
    return np.array([held, gang.request, np.maximum(held - least, 0.0), inqueue, claimed])
