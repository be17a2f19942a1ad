"""What a node will be worth to a class after one, two, three … more tasks of it, worked out many at a time.

Most placements are of the class that asked last, and touch one row. Scores that depend only on how much of a node is
used can be told beforehand: for the rows that are likely next, and for so many steps, in one vectorised reckoning.
"""

from collections.abc import Callable

import numpy as np

from hekla.engine.columns import NodeTable, Rows, Use, Vector, fits

STEPS = 16
ROWS = 64
Step = tuple[bool, bool, float]
"""Whether the row has room once something is released, whether it has room now, and its score."""


class Ladders:
    """One ladder for each row that is likely to be chosen soon."""

    def __init__(self, table: NodeTable, request: tuple[Vector, Vector], score: Callable[[Use], Vector]) -> None:
        self._table, self._score = table, score
        self._request, self._surplus = request
        self._steps: dict[int, list[Step]] = {}
        """What is left of each ladder, the next step last."""
        self._likely: list[int] = []
        """Rows that were liked best when this was last looked at."""

    def climb(self, row: int, taken: Vector | None) -> Step | None:
        """The row after one more task of this class went there. None: something else happened, or it ends here."""
        steps = self._steps.get(row) if taken is self._request else None
        return steps.pop() if steps else None

    def fall(self, rows: Rows) -> None:
        """These rows were changed otherwise."""
        if not self._steps:
            return
        if isinstance(rows, slice) and rows.start is None:
            self._steps.clear()
            return
        for row in range(rows.start, rows.stop) if isinstance(rows, slice) else rows.tolist():
            self._steps.pop(row, None)

    def stand(self, row: int, ranked: Vector) -> None:
        """Put up ladders where they stand now: this row, and those that are liked best."""
        if not self._likely:
            self._likely = np.argsort(-ranked, kind="stable")[: 8 * ROWS].tolist()
        next_ones, self._likely = self._likely[:ROWS], self._likely[ROWS:]
        rows = np.array([row, *(at for at in next_ones if at not in self._steps and at != row)])
        table, request = self._table, self._request
        used, expected = after(table.used[rows], request), after(table.expected[rows], request)
        allocatable = np.repeat(table.allocatable[rows], STEPS, axis=0)
        scores = self._score(Use(allocatable, used, expected, after(table.surplus[rows], self._surplus))).tolist()
        later = fits(request, after(table.future(rows), -request))
        now = (later & fits(request, after(table.idle[rows], -request))).tolist()
        steps = list(zip(later.tolist(), now, scores, strict=True))
        for at, one in enumerate(rows.tolist()):
            self._steps[one] = steps[at * STEPS : (at + 1) * STEPS][::-1]


def after(amounts: Vector, change: Vector) -> Vector:
    """Each row after one, two, three … such changes, one below the other."""
    steps: Vector = amounts[:, None, :] + np.arange(1, STEPS + 1)[:, None] * change
    return steps.reshape(-1, len(change))
