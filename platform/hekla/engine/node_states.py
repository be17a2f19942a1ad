"""Nodes with equal resources: they have room for the same pods, and equal scores by resources.

Most nodes are of few kinds, and pods of few sizes fill them alike. So one node of each state is examined for a class
of pods, and the result is kept by the number of the state.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from hekla.engine.columns import Mask, NodeTable, Vector

RowList = npt.NDArray[np.intp]
_KNOWN_AT_MOST = 50_000
NOWHERE = -np.inf
"""The score of a node without room."""
Step = tuple[bool, bool, float, float]
"""Whether a class of pods fits future idle, whether it fits idle, its score, and its score if it fits idle."""


def steps_of(later: "Mask", now: "Mask", scores: "Vector") -> list[Step]:
    """The steps of some rows, given by column."""
    return list(
        zip(later.tolist(), now.tolist(), scores.tolist(), np.where(now, scores, NOWHERE).tolist(), strict=True)
    )


class NodeStates:
    """The number of each row's state. Numbers are equal if and only if all amounts are, bit by bit."""

    def __init__(self, table: "NodeTable") -> None:
        self._table = table
        self._numbers: dict[bytes, int] = {}
        self._log_position = len(table.change_log)
        self._by_row = [self._numbers.setdefault(key, len(self._numbers)) for key in table.states_of_all()]
        self._distinct: tuple[RowList, RowList] | None = None
        self._known: dict[int, dict[int, Step]] = defaultdict(dict)
        self._known_count = 0

    def __len__(self) -> int:
        """How many states there were since the start of the session: at least as many as there are."""
        return len(self._numbers)

    def known_steps(self, number: int) -> Mapping[int, Step]:
        """The known steps of a class of pods (`StateScores`) by state."""
        return self._known[number]

    def learn(self, number: int, steps: Mapping[int, Step]) -> None:
        """Keep steps of a class. All classes together are bounded: with too many, the others are forgotten."""
        self._known_count += len(steps)
        self._known[number].update(steps)
        if self._known_count > _KNOWN_AT_MOST:
            self._known = defaultdict(dict, {number: self._known[number]})
            self._known_count = len(self._known[number])

    def of_rows(self, rows: list[int]) -> list[int]:
        """The numbers of these rows."""
        self._refresh()
        return [*map(self._by_row.__getitem__, rows)]

    def distinct(self) -> tuple[RowList, RowList]:
        """One row of each state, and for every row the position of its state among them."""
        self._refresh()
        if self._distinct is None:
            of_row = np.array(self._by_row, dtype=np.intp)
            example = np.full(len(self._numbers), -1)
            example[of_row] = np.arange(len(of_row))
            present = np.flatnonzero(example >= 0)
            position = np.empty_like(example)
            position[present] = np.arange(len(present))
            self._distinct = example[present], position[of_row]
        return self._distinct

    def _refresh(self) -> None:
        """Find the states of the rows that changed since the last call."""
        change_log, position = self._table.change_log, self._log_position
        if position == len(change_log):
            return
        numbers = self._numbers
        for row in set(change_log[position:]):
            self._by_row[row] = numbers.setdefault(self._table.state_of(row), len(numbers))
        self._log_position, self._distinct = len(change_log), None
