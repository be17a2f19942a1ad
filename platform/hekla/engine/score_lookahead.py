"""Scores of nodes after one, two, three … more pods of a class, computed together.

Most placements are of the same class as the last one and change one row. Scores that depend only on a node's resources
can be computed ahead: for the rows that are likely next, `STEPS` placements each, in one vectorised call.
"""

from collections.abc import Callable, Iterable

import numpy as np

from hekla.engine.columns import NodeResources, NodeTable, Vector, fits
from hekla.engine.node_states import Step, steps_of

STEPS = 16
ROWS = 64


class ScoreLookahead:
    """The next steps of each row that is likely to be chosen soon."""

    def __init__(
        self, table: NodeTable, request: tuple[Vector, Vector], score: Callable[[NodeResources], Vector]
    ) -> None:
        self._table, self._score = table, score
        self._request, self._surplus = request
        self._steps: dict[int, list[Step]] = {}
        """Remaining steps by row, the next one last."""
        self._likely: list[int] = []
        """The rows with the best scores when last sorted."""

    def next_step(self, row: int, allocated: Vector | None) -> Step | None:
        """The row after one more pod of this class; None if something else changed it or no step is left."""
        steps = self._steps.get(row) if allocated is self._request else None
        return steps.pop() if steps else None

    def invalidate(self, rows: Iterable[int]) -> None:
        """Drop the steps of rows that changed for another reason."""
        for row in rows if self._steps else ():
            self._steps.pop(row, None)

    def compute(self, row: int, ranked: Vector) -> None:
        """Compute the steps of this row and of the next best ones."""
        if not self._likely:
            self._likely = np.argsort(-ranked, kind="stable")[: 8 * ROWS].tolist()
        next_ones, self._likely = self._likely[:ROWS], self._likely[ROWS:]
        rows = np.array([row, *(at for at in next_ones if at not in self._steps and at != row)])
        table, request = self._table, self._request
        used, expected = after_placements(table.used[rows], request), after_placements(table.expected[rows], request)
        allocatable = np.repeat(table.allocatable[rows], STEPS, axis=0)
        scores = self._score(
            NodeResources(allocatable, used, expected, after_placements(table.nonzero_surplus[rows], self._surplus))
        )
        later = fits(request, after_placements(table.future_idle(rows), -request))
        steps = steps_of(later, later & fits(request, after_placements(table.idle[rows], -request)), scores)
        for at, one in enumerate(rows.tolist()):
            self._steps[one] = steps[at * STEPS : (at + 1) * STEPS][::-1]


def after_placements(amounts: Vector, change: Vector) -> Vector:
    """Each row after one, two, three … such changes, one below the other."""
    steps: Vector = amounts[:, None, :] + np.arange(1, STEPS + 1)[:, None] * change
    return steps.reshape(-1, len(change))
