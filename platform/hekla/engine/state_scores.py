"""Room and scores by resources, of one class of pods: examined once for each state of a node (`node_states`)."""

from collections.abc import Callable, Sequence
from itertools import count
from operator import lt

import numpy as np

from hekla.engine.columns import EPSILON, Mask, NodeResources, NodeTable, Vector, fits
from hekla.engine.node_columns import Column, ColumnScorer, NodeColumns
from hekla.engine.node_states import RowList, Step

ResourceScorer = Callable[[NodeResources], Vector]
_numbers = count()
_FEW = 10
"""Up to this number, it is faster to compute row by row."""


class StateScores:
    """What pods with this request find on nodes, as far as it depends on the resources of the node only."""

    def __init__(
        self,
        table: NodeTable,
        request: Vector,
        resource_scorers: Sequence[ResourceScorer],
        column_scorers: Sequence[ColumnScorer],
    ) -> None:
        self._table, self._request = table, request
        self._amounts: list[float] = request.tolist()
        self._resource_scorers, self._column_scorers = resource_scorers, column_scorers
        self._number = next(_numbers)

    def score(self, resources: NodeResources) -> Vector:
        """The scores of nodes with these resources."""
        total: Vector = np.zeros(len(resources.used))
        for scorer in self._resource_scorers:
            total += scorer(resources)
        if self._column_scorers:
            columns = NodeColumns.of(resources)
            for by_column in self._column_scorers:
                total += by_column(columns)
        return total

    def of_rows(self, rows: list[int]) -> list[Step]:
        """The step of each row."""
        states = self._table.states
        numbers, known = states.of_rows(rows), states.known_steps(self._number)
        if not all(map(known.__contains__, numbers)):
            missing = {state: row for state, row in zip(numbers, rows, strict=True) if state not in known}
            states.learn(self._number, dict(zip(missing, self._examine([*missing.values()]), strict=True)))
        return [known[state] for state in numbers]

    def of_candidates(self, candidates: Mask) -> tuple[Mask, Mask, Vector]:
        """The steps of these rows, as three columns over all rows; the other rows get no room and no score."""
        (rows,) = candidates.nonzero()
        if len(rows) >= len(self._table.states):
            examples, position = self._table.states.distinct()
            later, now, scores = self._examine_rows(examples)
            return later[position], now[position], scores[position]
        columns = (
            np.zeros(len(candidates), dtype=bool),
            np.zeros(len(candidates), dtype=bool),
            np.zeros(len(candidates)),
        )
        for column, found in zip(columns, self._examine_rows(rows), strict=True):
            column[rows] = found
        return columns

    def have_room(self) -> Mask:
        """The rows where the pods fit future idle."""
        rows, position = self._table.states.distinct()
        return fits(self._request, self._table.future_idle(rows))[position]

    def has_room_on(self, row: int) -> bool:
        """Whether the pods fit future idle of the row."""
        table = self._table
        room = table.future_idle(row) if table.has_reserved else table.idle[row]
        return _fit(self._amounts, room.tolist())

    def _examine(self, rows: list[int]) -> list[Step]:
        if len(rows) <= _FEW and not self._resource_scorers:
            return [self._examine_row(row) for row in rows]
        return list(zip(*(column.tolist() for column in self._examine_rows(np.array(rows))), strict=True))

    def _examine_rows(self, rows: RowList) -> tuple[Mask, Mask, Vector]:
        table, request = self._table, self._request
        later = fits(request, table.future_idle(rows))
        now = later & fits(request, table.idle[rows]) if table.has_reserved else later
        return later, now, self.score(table.resources(rows))

    def _examine_row(self, row: int) -> Step:
        table, nodes = self._table, NodeColumns.of_row(self._table, row)
        later = self.has_room_on(row)
        now = later and (not table.has_reserved or _fit(self._amounts, table.idle[row].tolist()))
        total: Column = 0.0
        for scorer in self._column_scorers:
            total = total + scorer(nodes)
        return later, now, float(total)


def _fit(request: list[float], room: list[float]) -> bool:
    """As `fits`, for one node."""
    return all(map(lt, request, [there + EPSILON for there in room]))
