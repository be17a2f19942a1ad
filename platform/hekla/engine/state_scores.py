"""Room and scores of one class of pods, by the state of a node (`node_states`)."""

from collections.abc import Callable

import numpy as np

from hekla.engine.columns import Mask, NodeTable, Vector, fits
from hekla.engine.node_states import RowList, Step

Examine = Callable[[RowList], tuple[Mask, Mask, Vector]]
_KNOWN_AT_MOST = 50_000


class StateScores:
    """Examines one row of each state. `examine`: fits future idle, fits idle, and the score of some rows."""

    def __init__(self, table: NodeTable, examine: Examine) -> None:
        self._table, self._states, self._examine = table, table.states, examine
        self._number = next(self._states.serial_numbers)

    def of_rows(self, rows: list[int]) -> list[Step]:
        """The step of each row; for few rows."""
        known, mine = self._states.known, self._number
        if len(known) > _KNOWN_AT_MOST:
            known.clear()
        keys = [(mine, state) for state in self._states.of_rows(rows)]
        missing = {key: row for key, row in zip(keys, rows, strict=True) if key not in known}
        if missing:
            found = self._examine(np.array(list(missing.values())))
            known.update(zip(missing, zip(*(one.tolist() for one in found), strict=True), strict=True))
        return [known[key] for key in keys]

    def of_all_rows(self) -> tuple[Mask, Mask, Vector]:
        """The results of `examine` for all rows."""
        rows, position = self._states.distinct()
        later, now, scores = self._examine(rows)
        return later[position], now[position], scores[position]

    def fit_later(self, request: Vector) -> Mask:
        """The rows where the request fits future idle."""
        rows, position = self._states.distinct()
        return fits(request, self._table.future_idle(rows))[position]
