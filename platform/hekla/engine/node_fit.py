"""Feasible nodes and their scores for one class of pods, cached between placements and updated for changed rows.

Pods with equal requests and constraints form a class. Plugins register predicates and scores by what they depend on, so
little is computed again after a placement:

    PREDICATE             (pod, table) -> Refusals; depends on the node only: called once
    CHANGING_PREDICATE    (pod, table) -> None or (rows) -> Refusals; on the pods of the node: called for changed rows
    WIDE_PREDICATE        (pod, table) -> None or () -> Refusals; on pods of other nodes: called after any change
    USE_ORDER             (pod) -> None or (NodeResources) -> scores; on the node's resources only
    COLUMN_ORDER          (pod) -> None or (NodeColumns) -> scores; the same by column, much faster (`node_columns`)
    NODE_ORDER            (pod, table, rows) -> scores; on the pods of the node: called for changed rows
    WIDE_NODE_ORDER       (pod, table) -> None or (rows) -> scores; compares the candidate rows with each other

Masks and scores have one entry per requested row. None: the plugin does not apply to the class.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hekla.domain.resources import Resources
from hekla.engine.columns import EPSILON, Dimensions, Mask, NodeTable, Rows, Vector, fits
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.job_info import PodInfo
from hekla.engine.node_states import NOWHERE, RowList, Step
from hekla.engine.score_lookahead import ScoreLookahead
from hekla.engine.state_scores import StateScores

ALL_ROWS = slice(None)
_NEVER = -1
_NO_ROWS: Mask = np.zeros(0, dtype=bool)
_NO_SCORES: Vector = np.zeros(0)


class Refusal(NamedTuple):
    """Refused rows and the reason. `is_unresolvable`: evictions cannot help (UnschedulableAndUnresolvable).
    `is_lasting`: False for a state of the node that passes without a change of the pod or the node's labels.
    `needs_own_queue`: only evictions of pods of the same queue can help.
    """

    mask: Mask
    reason: str
    is_unresolvable: bool = True
    is_lasting: bool = True
    needs_own_queue: bool = False


@dataclass(frozen=True, slots=True)
class FitError:
    """Why no node fits a class. `node_counts`: nodes by reason; `fits_when_empty`: a node that is not refused for good
    would have room if it were empty.

    Of the `feasible` nodes, those that only lack room: `max_idle`, per resource the most that one has free, or has at
    all if none is large enough; `free` and `whole`, what all of them have free and have at all; `slots`, how many pods
    of the class fit there together.
    """

    node_counts: Mapping[str, int]
    max_idle: Resources
    free: Resources
    whole: Resources
    feasible: int
    slots: int
    fits_when_empty: bool

    @property
    def has_feasible_node(self) -> bool:
        """Whether only room is missing."""
        return self.feasible > 0


class NodeFit:
    """The feasible nodes of one class of pods and their scores."""

    def __init__(
        self, pod: PodInfo, table: NodeTable, functions: Callable[[ExtensionPoint], Sequence[Callable[..., Any]]]
    ) -> None:
        def for_class(point: ExtensionPoint, *about: object) -> list[Callable[..., Any]]:
            made = (factory(pod, *about) for factory in functions(point))
            return [function for function in made if function is not None]

        self._pod, self._table = pod, table
        self._static_refusals: list[Refusal] = [
            r for predicate in functions(ExtensionPoint.PREDICATE) for r in predicate(pod, table)
        ]
        self._node_predicates, self._cluster_predicates = (
            for_class(ExtensionPoint.CHANGING_PREDICATE, table),
            for_class(ExtensionPoint.WIDE_PREDICATE, table),
        )
        scorers = for_class(ExtensionPoint.USE_ORDER), for_class(ExtensionPoint.COLUMN_ORDER)
        self._scorers, self._relative_scorers = (
            functions(ExtensionPoint.NODE_ORDER),
            for_class(ExtensionPoint.WIDE_NODE_ORDER, table),
        )
        self._statically_feasible = ~_refused_rows(self._static_refusals, len(table))
        request = pod.request, pod.nonzero_surplus
        self._state_scores = StateScores(table, request, self._may_be_chosen(), *scorers)
        self._feasible = self._feasible_alone = (
            self._statically_feasible.copy() if self._node_predicates else self._statically_feasible
        )
        """`_feasible_alone`: without predicates that depend on pods of other nodes."""
        self._later = self._now = self._fits_future = _NO_ROWS
        """Rows with room in future idle, in idle, and feasible ones with room in future idle."""
        self._scores = self._idle_scores = _NO_SCORES
        """Scores of all rows; in `_idle_scores` minus infinity for rows that are not feasible or have no idle room."""
        self._unsettled: dict[int, Step] = {}
        """Steps that are in force in `_idle_scores` only: the rest is rarely needed between placements."""
        self._best_idle: int | None = None
        """The result of `_best_idle_row` since the last refresh; -1 for no row."""
        self._fit_error: tuple[int, FitError] | None = None
        self._log_position = _NEVER
        """The changes that were taken into account. The rows are scored on first use: many classes are not placed."""
        self._is_feasible_everywhere = bool(self._statically_feasible.all())
        """Used only if nothing but resources changes the result."""
        is_predictable = not (self._node_predicates or self._cluster_predicates or self._scorers)
        self._lookahead = ScoreLookahead(table, request, self._state_scores.score) if is_predictable else None

    @property
    def feasible(self) -> Mask:
        """The rows that passed all predicates at the last refresh."""
        if self._log_position == _NEVER and self.depends_on_pods:
            self.refresh()
        return self._feasible

    def has_room(self) -> bool:
        """Whether any row fits, now or in future idle; cheaper than `best_node`, which needs scores."""
        if self._log_position == _NEVER and not self.depends_on_pods and len(self._feasible):
            first = int(self._feasible.argmax())
            is_first = bool(self._feasible[first]) and self._state_scores.has_room_on(first)
            return is_first or bool((self._feasible & self._state_scores.have_room()).any())
        self._refresh_idle()
        if self._best_idle_row() is not None:
            return True
        self._settle()
        return bool(np.count_nonzero(self._fits_future))  # on small arrays much faster than `any`

    def best_node(self, within: Mask | None = None) -> tuple[int, bool] | None:
        """The best row, and whether it has room now (else in future idle). None if no row fits."""
        self._refresh_idle()
        if within is None and not self._relative_scorers and (row := self._best_idle_row()) is not None:
            return row, True
        self._settle()
        for mask, now in ((self._idle_scores > NOWHERE, True), (self._fits_future, False)):
            (rows,) = (mask if within is None else mask & within).nonzero()
            if rows.size:
                return int(rows[self._total_scores(rows).argmax()]), now
        return None

    def _best_idle_row(self) -> int | None:
        """The best row with room now, without scores that compare rows with each other; None if no row has room."""
        best, scores = self._best_idle, self._idle_scores
        if best is None:
            best = int(scores.argmax()) if len(scores) else -1
            if best >= 0 and scores[best] == NOWHERE:
                best = -1
            self._best_idle = best
        return best if best >= 0 else None

    def is_feasible(self, row: int) -> bool:
        """Whether the row passes all predicates, room aside."""
        if self.depends_on_pods:
            self.refresh()
        return bool(self.feasible[row])

    @property
    def depends_on_pods(self) -> bool:
        """Whether feasibility depends on other pods."""
        return bool(self._node_predicates or self._cluster_predicates)

    def candidates(self) -> tuple[Mask, bool]:
        """The rows among which `best_node` chooses, and whether they have room now (else in future idle)."""
        self.refresh()
        now = self._idle_scores > NOWHERE
        return (now, True) if now.any() else (self._fits_future.copy(), False)

    def with_room(self) -> Mask:
        """Feasible rows with room now or in future idle."""
        self.refresh()
        return self._fits_future.copy()

    def best_of(self, rows: RowList, more: Callable[[RowList], Vector]) -> tuple[int, bool] | None:
        """As `best_node`, of these rows (ascending); `more`: additional scores."""
        self.refresh()
        for is_open, now in ((self._idle_scores[rows] > -np.inf, True), (self._fits_future[rows], False)):
            open_rows = rows[is_open]
            if open_rows.size:
                return int(open_rows[self._total_scores(open_rows, more).argmax()]), now
        return None

    def _total_scores(self, rows: RowList, more: Callable[[RowList], Vector] | None = None) -> Vector:
        """The scores of these rows, with those that compare them with each other."""
        total: Vector = self._scores[rows] if more is None else self._scores[rows] + more(rows)
        for scorer in self._relative_scorers:
            total += scorer(rows)
        return total

    def count_slots(self, rows: RowList) -> int:
        """How many pods of the class fit the future idle of these rows."""
        self.refresh()
        requested = self._pod.request > 0
        parts = (self._table.future_idle(rows)[:, requested] + EPSILON) / self._pod.request[requested]
        return int(np.where(self._feasible[rows], np.floor(parts.min(axis=1, initial=np.inf)), 0.0).clip(0).sum())

    def has_room_now(self, row: int) -> bool | None:
        """Whether the row has room now (False: in future idle). None if it does not fit."""
        self.refresh()
        return bool(self._idle_scores[row] > -np.inf) if self._fits_future[row] else None

    def scores(self, mask: Mask) -> Vector:
        """Scores of all rows; only those of the mask are complete."""
        if self._log_position == _NEVER:
            self.refresh()
        self._settle()
        if not self._relative_scorers:
            return self._scores
        total, rows = self._scores.copy(), np.flatnonzero(mask)
        total[rows] = self._total_scores(rows)
        return total

    def refusals(self) -> list[Refusal]:
        """All current refusals, over all rows."""
        return [
            *self._static_refusals,
            *(r for function in self._node_predicates for r in function(ALL_ROWS)),
            *(r for v in self._cluster_predicates for r in v()),
        ]

    def resolvable(self, *, in_own_queue: bool) -> Mask:
        """Rows without an unresolvable refusal: evictions may help there. `in_own_queue`: of pods of the same queue."""
        hopeless = (one for one in self.refusals() if one.is_unresolvable or (one.needs_own_queue and not in_own_queue))
        return ~_refused_rows(hopeless, len(self._table))

    def fit_error(self, dimensions: Dimensions) -> FitError:
        """Why no node fits; cached until the next change."""
        stamp = len(self._table.change_log)
        if self._fit_error is None or self._fit_error[0] != stamp:
            self.refresh()
            (rows,) = self._feasible.nonzero()
            free, whole = (
                np.minimum(self._table.idle[rows], self._table.future_idle(rows)).clip(0),
                self._table.allocatable[rows],
            )
            lasting = _refused_rows((one for one in self._static_refusals if one.is_lasting), len(self._table))
            fits_when_empty = ~lasting & fits(self._pod.request, self._table.allocatable)
            self._fit_error = (
                stamp,
                FitError(
                    dict(self._count_refusals(dimensions)),
                    dimensions.resources((free if fits_when_empty.any() else whole).max(axis=0, initial=0.0)),
                    dimensions.resources(free.sum(axis=0)),
                    dimensions.resources(whole.sum(axis=0)),
                    len(rows),
                    self.count_slots(rows),
                    bool(fits_when_empty.any()),
                ),
            )
        return self._fit_error[1]

    def _count_refusals(self, dimensions: Dimensions) -> Counter[str]:
        """The number of nodes by their first reason."""
        counts: Counter[str] = Counter()
        left = np.ones(len(self._table), dtype=bool)
        for refusal in self.refusals():
            counts[refusal.reason] += int((refusal.mask & left).sum())
            left &= ~refusal.mask
        future = self._table.future_idle()
        for at, name in enumerate(dimensions.names):
            short = left & (self._pod.request[at] > future[:, at] + 0.1)
            word = "too many pods" if name == "pods" else f"insufficient {name}"
            counts[word] += int(short.sum())
            left &= ~short
        return +counts

    def refresh(self) -> None:
        """Update the rows that changed since the last call."""
        self._refresh_idle()
        self._settle()

    def _refresh_idle(self) -> None:
        """As `refresh`, perhaps of `_idle_scores` only."""
        change_log, position = self._table.change_log, self._log_position
        if position == len(change_log):
            return
        self._log_position, self._best_idle = len(change_log), None
        if position == _NEVER:
            self._score_all()
        elif self._lookahead is None:
            self._rescore(list(set(change_log[position:])))
        elif self._log_position - position == 1:
            self._look_ahead(change_log[position], self._table.allocations[position], self._lookahead)
        else:
            rows = list(set(change_log[position:]))
            self._lookahead.invalidate(rows)
            self._set_all(rows)

    def _look_ahead(self, row: int, allocated: Vector | None, lookahead: ScoreLookahead) -> None:
        """Update the only row that changed. Mostly another pod of this class was placed there."""
        step = lookahead.next_step(row, allocated)
        if step is not None:
            self._set([row], [step])
        else:
            self._set_all([row])
            lookahead.compute(row, self._idle_scores)

    def _set_all(self, rows: list[int]) -> None:
        self._set(rows, self._state_scores.of_rows(rows))

    def _set(self, rows: list[int], steps: list[Step]) -> None:
        """Set the results of rows, if they depend on their resources only."""
        self._unsettled.update(zip(rows, steps, strict=True))
        idle_scores, feasible = self._idle_scores, self._feasible
        if self._is_feasible_everywhere:
            for row, step in zip(rows, steps, strict=True):
                idle_scores[row] = step[3]
        else:
            for row, step in zip(rows, steps, strict=True):
                idle_scores[row] = step[3] if feasible[row] else NOWHERE

    def _settle(self) -> None:
        """Complete what `_set` began."""
        if self._unsettled:
            for row, (later, _now, score, _idle_score) in self._unsettled.items():
                self._scores[row], self._fits_future[row] = score, later and self._feasible[row]
            self._unsettled.clear()

    def _score_all(self) -> None:
        self._later, self._now, self._scores = self._state_scores.of_candidates()
        self._fits_future, self._idle_scores = np.empty_like(self._later), np.empty_like(self._scores)
        self._finish(ALL_ROWS)

    def _may_be_chosen(self) -> Mask:
        """The rows that need scores: no predicate refuses them for good, so they fit or evictions may help."""
        lasting = [refusal for refusal in self._static_refusals if refusal.is_unresolvable]
        if len(lasting) == len(self._static_refusals):
            return self._statically_feasible
        return ~_refused_rows(lasting, len(self._table))

    def _rescore(self, rows: list[int]) -> None:
        steps = zip(*self._state_scores.of_rows(rows), strict=True)
        self._later[rows], self._now[rows], self._scores[rows], _ = steps
        self._finish(np.array(rows))

    def _finish(self, rows: Rows) -> None:
        """Complete the results by resources with what depends on the rows themselves and on pods."""
        for scorer in self._scorers:
            self._scores[rows] += scorer(self._pod, self._table, rows)
        if self._node_predicates:
            refused = _refused_rows(
                (r for function in self._node_predicates for r in function(rows)), len(self._scores[rows])
            )
            self._feasible_alone[rows] = self._statically_feasible[rows] & ~refused
        if self._cluster_predicates:
            rows = ALL_ROWS
            self._feasible = self._feasible_alone & ~_refused_rows(
                (r for function in self._cluster_predicates for r in function()), len(self._table)
            )
        self._fits_future[rows] = self._feasible[rows] & self._later[rows]
        has_room = self._fits_future[rows] & self._now[rows]
        self._idle_scores[rows] = np.where(has_room, self._scores[rows], -np.inf)


def _refused_rows(refusals: Iterable[Refusal], count: int) -> Mask:
    refused = np.zeros(count, dtype=bool)
    for refusal in refusals:
        refused |= refusal.mask
    return refused
