"""Room and scores by resources, of one class of pods: examined once for each state of a node (`node_states`).

A class that only some nodes suit is examined together with the next classes that have the same scorers: for numpy, a
thousand numbers are little more work than a few. Nodes that change before such a class is used are examined again.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, count
from operator import lt

import numpy as np

from hekla.engine.columns import EPSILON, Mask, NodeResources, NodeTable, Vector, fits
from hekla.engine.node_columns import Column, ColumnScorer, NodeColumns, NodeNumbers, RequestColumns
from hekla.engine.node_states import NOWHERE, RowList, Step, steps_of

ResourceScorer = Callable[[NodeResources], Vector]
_Examined = tuple[Mask, Mask, Vector]
"""The steps of some rows, by column."""
_numbers = count()
_FEW = 10
"""Up to this number, it is faster to compute row by row."""
_TOGETHER, _CLASSES = 1000, 16
"""Up to so many rows, and classes, are examined together: of more, too many rows would change before they are used."""


class StateScores:
    """What pods with this request find on nodes, as far as it depends on the resources of the node only.

    `candidates`: the rows that need scores.
    """

    def __init__(
        self,
        table: NodeTable,
        request: tuple[Vector, Vector],
        candidates: Mask,
        resource_scorers: Sequence[ResourceScorer],
        column_scorers: Sequence[ColumnScorer],
    ) -> None:
        self._table, (self._request, self._surplus) = table, request
        self._amounts: list[float] = self._request.tolist()
        self._requests = RequestColumns.of(*request)
        self._resource_scorers, self._column_scorers = resource_scorers, column_scorers
        self._number = next(_numbers)
        self._candidates, self._is_examined = candidates, False
        self._ahead: tuple[int, _Examined] | None = None
        """The candidates' steps until they are used, and after how many changes of the table they were examined."""
        table.unexamined[*resource_scorers, *column_scorers].append(self)

    def score(self, resources: NodeResources, requests: RequestColumns | None = None) -> Vector:
        """The scores of nodes with these resources. `requests`: of the class for each node, if not of this one."""
        total: Vector = np.zeros(len(resources.used))
        for scorer in self._resource_scorers:
            total += scorer(resources)
        if self._column_scorers:
            columns = NodeColumns.of(resources, requests or self._requests)
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
        return [*map(known.__getitem__, numbers)]

    def of_candidates(self) -> _Examined:
        """The steps of the candidates, as three columns over all rows; the other rows get no room and no score."""
        table, candidates = self._table, self._candidates
        (rows,) = candidates.nonzero()
        self._is_examined = True
        if len(rows) >= len(table.states):
            examples, state = table.states.distinct()
            later, now, scores = self._examine_rows(examples, self._requests)
            return later[state], now[state], scores[state]
        position, examined = self._ahead or self._examine_together(rows)
        self._ahead = None
        columns = np.zeros_like(candidates), np.zeros_like(candidates), np.zeros(len(candidates))
        for column, found in zip(columns, examined, strict=True):
            column[rows] = found
        changed = [row for row in set(table.change_log[position:]) if candidates[row]]
        for row, step in zip(changed, self._examine(changed) if changed else (), strict=True):
            for column, one in zip(columns, step[: len(columns)], strict=True):
                column[row] = one
        return columns

    def _examine_together(self, rows: RowList) -> tuple[int, _Examined]:
        """Examine these rows, and for later the candidates of the next classes."""
        classes, parts = self._with_next_classes(rows)
        sizes = [*map(len, parts)]
        requests = RequestColumns.of(
            np.repeat([one._request for one in classes], sizes, axis=0),
            np.repeat([one._surplus for one in classes], sizes, axis=0),
        )
        later, now, scores = self._examine_rows(np.concatenate(parts), requests)
        position = len(self._table.change_log)
        for one, size, end in zip(classes, sizes, accumulate(sizes), strict=True):
            part = slice(end - size, end)
            one._ahead = position, (later[part], now[part], scores[part])
        return position, (later[: len(rows)], now[: len(rows)], scores[: len(rows)])

    def _with_next_classes(self, rows: RowList) -> tuple[list["StateScores"], list[RowList]]:
        """This class and others that were not examined yet, each with its candidates; these are the own ones."""
        waiting = self._table.unexamined[*self._resource_scorers, *self._column_scorers]
        classes, parts, total = [self], [rows], len(rows)
        while waiting and total < _TOGETHER and len(classes) < _CLASSES:
            one = waiting.popleft()
            if not one._is_examined:
                one._is_examined = True
                classes.append(one)
                parts.append(one._candidates.nonzero()[0])
                total += len(parts[-1])
        return classes, parts

    def have_room(self) -> Mask:
        """The rows where the pods fit future idle."""
        table, (rows, position) = self._table, self._table.states.distinct()
        room = table.future_idle(rows) if table.has_reserved else table.idle.take(rows, axis=0)
        return fits(self._request, room)[position]

    def has_room_on(self, row: int) -> bool:
        """Whether the pods fit future idle of the row."""
        table = self._table
        room = table.future_idle(row) if table.has_reserved else table.idle[row]
        return _fit(self._amounts, room.tolist())

    def _examine(self, rows: list[int]) -> list[Step]:
        if len(rows) <= _FEW and not self._resource_scorers:
            return [self._examine_row(row) for row in rows]
        return steps_of(*self._examine_rows(np.array(rows), self._requests))

    def _examine_rows(self, rows: RowList, requests: RequestColumns) -> _Examined:
        table = self._table
        later = now = fits(requests.request, table.idle.take(rows, axis=0))
        if table.has_reserved:
            later = fits(requests.request, table.future_idle(rows))
            now = now & later
        return later, now, self.score(table.resources(rows), requests)

    def _examine_row(self, row: int) -> Step:
        table = self._table
        idle, used, expected, allocatable, releasing, pipelined = table.amounts_of(row)
        later = now = _fit(self._amounts, idle)
        if table.has_reserved:
            future = [free + soon - promised for free, soon, promised in zip(idle, releasing, pipelined, strict=True)]
            later = _fit(self._amounts, future)
            now = now and later
        nodes = NodeNumbers(self._requests, allocatable, used, expected, table.nonzero_surplus[row].tolist())
        total: Column = 0.0
        for scorer in self._column_scorers:
            total = total + scorer(nodes)
        score = float(total)
        return later, now, score, score if now else NOWHERE


def _fit(request: list[float], room: list[float]) -> bool:
    """As `fits`, for one node."""
    return all(map(lt, request, [there + EPSILON for there in room]))
