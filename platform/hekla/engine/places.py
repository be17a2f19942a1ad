"""Where a class of tasks may go, and how much each place is liked: kept between placements, renewed where touched.

Tasks with the same request and conditions form a class. What plugins say of a class comes in kinds, by what it depends
on, so that little is asked again after a placement:

    PREDICATE             (member, table) -> Refusals; on the node alone: asked once
    CHANGING_PREDICATE    (member, table) -> None, or (rows) -> Refusals; on what is on the node: asked for touched rows
    WIDE_PREDICATE        (member, table) -> None, or () -> Refusals; on what is on other nodes: asked after any change
    USE_ORDER             (member) -> None, or (Use) -> scores; on how much of the node is used, and nothing else
    NODE_ORDER            (member, table, rows) -> scores; on what is on the node: asked for touched rows
    WIDE_NODE_ORDER       (member, table) -> None, or (rows) -> scores; compares the rows that come into question

Masks and scores have one entry a row asked for. A plugin that has nothing to say of a class gives None once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hekla.domain.resources import Resources
from hekla.engine.columns import EPSILON, Dimensions, Mask, NodeTable, Rows, Use, Vector, fits
from hekla.engine.gangs import Member
from hekla.engine.ladders import Ladders
from hekla.engine.points import Point

ALL = slice(None)
RowList = npt.NDArray[np.intp]
UseScorer = Callable[[Use], Vector]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rows that are refused, and why. `is_final`: no eviction would help (Kubernetes' UnschedulableAndUnresolvable)."""

    mask: Mask
    reason: str
    is_final: bool = True


@dataclass(frozen=True, slots=True)
class Standing:
    """Why a class has no place. `nodes`: how many refuse, by reason; `most`: what is free on the nodes at most.

    `is_allowed`: some node would take it but for want of room; `ever`: and would have the room if it were empty.
    """

    nodes: Mapping[str, int]
    most: Resources
    is_allowed: bool
    ever: bool


class Places:
    """The places of one class of tasks."""

    def __init__(
        self, member: Member, table: NodeTable, answers: Callable[[Point], Sequence[Callable[..., Any]]]
    ) -> None:
        def voices(point: Point, *about: object) -> list[Callable[..., Any]]:
            made = (factory(member, *about) for factory in answers(point))
            return [voice for voice in made if voice is not None]

        self._member, self._table = member, table
        self._fixed: list[Refusal] = [r for predicate in answers(Point.PREDICATE) for r in predicate(member, table)]
        self._changing, self._wide = voices(Point.CHANGING_PREDICATE, table), voices(Point.WIDE_PREDICATE, table)
        self._use_scorers: list[UseScorer] = voices(Point.USE_ORDER)
        self._scorers, self._wide_scorers = answers(Point.NODE_ORDER), voices(Point.WIDE_NODE_ORDER, table)
        self._open = ~_any_of(self._fixed, len(table))
        self.allowed = self._open.copy()
        self._narrow = self._open.copy()
        self._scores = np.zeros(len(table))
        self._ranked = np.zeros(len(table))
        """The scores of the rows with room now, and minus infinity for the others."""
        self._later = np.zeros(len(table), dtype=bool)
        """The rows with room now, or once something is released."""
        self._standing: tuple[int, Standing] | None = None
        self._seen = len(table.touched)
        is_predictable = not (self._changing or self._wide or self._scorers)
        self._ladders = Ladders(table, (member.request, member.surplus), self._by_use) if is_predictable else None
        self._renew(ALL)

    def best(self, within: Mask | None = None) -> tuple[int, bool] | None:
        """The best row and whether there is room now (else: once something is released). None: nowhere."""
        self.catch_up()
        if within is None and not self._wide_scorers:
            row = int(self._ranked.argmax()) if len(self._ranked) else 0
            if len(self._ranked) and self._ranked[row] > -np.inf:
                return row, True
        for mask, now in ((self._ranked > -np.inf, True), (self._later, False)):
            choice = mask if within is None else mask & within
            if choice.any():
                return int(np.where(choice, self.scores(choice), -np.inf).argmax()), now
        return None

    def allows(self, row: int) -> bool:
        """Whether this row may be used at all, but for room."""
        if self.depends_on_pods:
            self.catch_up()
        return bool(self.allowed[row])

    @property
    def depends_on_pods(self) -> bool:
        """Whether what is allowed can change with the pods around."""
        return bool(self._changing or self._wide)

    def welcoming(self) -> Mask:
        """The rows that are allowed and have room now, or once something is released."""
        self.catch_up()
        return self._later.copy()

    def best_of(self, rows: RowList, more: Callable[[RowList], Vector]) -> tuple[int, bool] | None:
        """The best of a few rows (ascending); `more`: what they are worth besides."""
        self.catch_up()
        for is_open, now in ((self._ranked[rows] > -np.inf, True), (self._later[rows], False)):
            open_rows = rows[is_open]
            if open_rows.size:
                total: Vector = self._scores[open_rows] + more(open_rows)
                for scorer in self._wide_scorers:
                    total += scorer(open_rows)
                return int(open_rows[total.argmax()]), now
        return None

    def slots(self, rows: RowList) -> int:
        """How many of the class these rows may hold, now or once something is released."""
        self.catch_up()
        asked = self._member.request > 0
        parts = (self._table.future(rows)[:, asked] + EPSILON) / self._member.request[asked]
        return int(np.where(self.allowed[rows], np.floor(parts.min(axis=1, initial=np.inf)), 0.0).clip(0).sum())

    def room_on(self, row: int) -> bool | None:
        """Whether there is room now on this row (else: once something is released). None: neither."""
        self.catch_up()
        return bool(self._ranked[row] > -np.inf) if self._later[row] else None

    def scores(self, mask: Mask) -> Vector:
        """What each row is worth; the rows in question are those of the mask, the others count for nothing."""
        if not self._wide_scorers:
            return self._scores
        total, rows = self._scores.copy(), np.flatnonzero(mask)
        for scorer in self._wide_scorers:
            total[rows] += scorer(rows)
        return total

    def refusals(self) -> list[Refusal]:
        """Every refusal as things stand, over all rows."""
        return [
            *self._fixed,
            *(r for voice in self._changing for r in voice(ALL)),
            *(r for v in self._wide for r in v()),
        ]

    def curable(self) -> Mask:
        """The rows that no final refusal stands against: evictions may make place there."""
        return ~_any_of((refusal for refusal in self.refusals() if refusal.is_final), len(self._table))

    def standing(self, dimensions: Dimensions) -> Standing:
        """Why there is no place for the class, reckoned once between changes."""
        stamp = len(self._table.touched)
        if self._standing is None or self._standing[0] != stamp:
            self.catch_up()
            most = dimensions.resources(self._table.idle.max(axis=0, initial=0.0))
            nodes = dict(self._why_nowhere(dimensions))
            self._standing = stamp, Standing(nodes, most, bool(self.allowed.any()), self._could_ever())
        return self._standing[1]

    def _why_nowhere(self, dimensions: Dimensions) -> Counter[str]:
        """How many nodes refuse, by reason; the first reason of a node counts."""
        counts: Counter[str] = Counter()
        left = np.ones(len(self._table), dtype=bool)
        for refusal in self.refusals():
            counts[refusal.reason] += int((refusal.mask & left).sum())
            left &= ~refusal.mask
        future = self._table.future()
        for at, name in enumerate(dimensions.names):
            short = left & (self._member.request[at] > future[:, at] + 0.1)
            word = "too many pods" if name == "pods" else f"insufficient {name}"
            counts[word] += int(short.sum())
            left &= ~short
        return +counts

    def _could_ever(self) -> bool:
        """Whether an allowed node would have room if it were empty."""
        return bool((self._open & fits(self._member.request, self._table.allocatable)).any())

    def catch_up(self) -> None:
        """Look again at the rows that were touched since the last look."""
        touched, seen = self._table.touched, self._seen
        if seen == len(touched):
            return
        self._seen = len(touched)
        if self._seen - seen > 1 or self._ladders is None:
            self._renew(np.array(list({row for row, _ in touched[seen:]}), dtype=np.intp))
            return
        row, taken = touched[seen]
        step = self._ladders.climb(row, taken)
        if step is None:
            self._renew(slice(row, row + 1))
            self._ladders.stand(row, self._ranked)
        else:
            self._later[row], has_room, self._scores[row] = step
            self._ranked[row] = self._scores[row] if has_room and self.allowed[row] else -np.inf
            self._later[row] &= self.allowed[row]

    def _renew(self, rows: Rows) -> None:
        if self._ladders is not None:
            self._ladders.fall(rows)
        self._scores[rows] = self._by_use(self._table.use(rows))
        for scorer in self._scorers:
            self._scores[rows] += scorer(self._member, self._table, rows)
        if self._changing:
            refused = _any_of((r for voice in self._changing for r in voice(rows)), len(self._scores[rows]))
            self._narrow[rows] = self._open[rows] & ~refused
        if self._wide:
            rows = ALL
            self.allowed = self._narrow & ~_any_of((r for voice in self._wide for r in voice()), len(self._table))
        else:
            self.allowed[rows] = self._narrow[rows]
        self._later[rows] = self.allowed[rows] & fits(self._member.request, self._table.future(rows))
        has_room = self._later[rows] & fits(self._member.request, self._table.idle[rows])
        self._ranked[rows] = np.where(has_room, self._scores[rows], -np.inf)

    def _by_use(self, use: Use) -> Vector:
        total: Vector = np.zeros(len(use.used))
        for scorer in self._use_scorers:
            total += scorer(use)
        return total


def _any_of(refusals: Iterable[Refusal], count: int) -> Mask:
    refused = np.zeros(count, dtype=bool)
    for refusal in refusals:
        refused |= refusal.mask
    return refused
