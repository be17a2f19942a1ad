"""Where a class of tasks may go, and how much each place is liked: kept between placements, renewed where touched.

Tasks with the same request and conditions form a class. What plugins say of a class comes in three kinds, by what it
depends on, so that little is asked again after a placement:

    PREDICATE             (member, table) -> Refusals; on the node alone: asked once
    CHANGING_PREDICATE    (member, table) -> None, or (rows) -> Refusals; on what is on the node: asked for touched rows
    WIDE_PREDICATE        (member, table) -> None, or () -> Refusals; on what is on other nodes: asked after any change
    NODE_ORDER            (member, table, rows) -> scores; on what is on that node: asked for touched rows
    WIDE_NODE_ORDER       (member, table) -> None, or (rows) -> scores; compares the rows that come into question

Masks and scores have one entry a row asked for. A plugin that has nothing to say of a class gives None once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hekla.engine.columns import Dimensions, Mask, NodeTable, Rows, Vector, fits
from hekla.engine.gangs import Member
from hekla.engine.points import Point

ALL = slice(None)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rows that are refused, and why. `is_final`: no eviction would help (Kubernetes' UnschedulableAndUnresolvable)."""

    mask: Mask
    reason: str
    is_final: bool = True


class Places:
    """The places of one class of tasks."""

    def __init__(
        self, member: Member, table: NodeTable, answers: Callable[[Point], Sequence[Callable[..., Any]]]
    ) -> None:
        def voices(point: Point) -> list[Callable[..., Any]]:
            made = (factory(member, table) for factory in answers(point))
            return [voice for voice in made if voice is not None]

        self._member, self._table = member, table
        self._fixed: list[Refusal] = [r for predicate in answers(Point.PREDICATE) for r in predicate(member, table)]
        self._changing, self._wide = voices(Point.CHANGING_PREDICATE), voices(Point.WIDE_PREDICATE)
        self._scorers, self._wide_scorers = answers(Point.NODE_ORDER), voices(Point.WIDE_NODE_ORDER)
        self._open = ~_any_of(self._fixed, len(table))
        self.allowed = self._open.copy()
        self._narrow = self._open.copy()
        self._scores = np.zeros(len(table))
        self._now, self._later = np.zeros(len(table), dtype=bool), np.zeros(len(table), dtype=bool)
        self._seen = len(table.touched)
        self._renew(ALL)

    def best(self) -> tuple[int, bool] | None:
        """The best row and whether there is room now (else: once something is released). None: nowhere."""
        self.catch_up()
        for mask, now in ((self._now, True), (self._later, False)):
            if mask.any():
                return int(np.where(mask, self.scores(mask), -np.inf).argmax()), now
        return None

    def room_on(self, row: int) -> bool | None:
        """Whether there is room now on this row (else: once something is released). None: neither."""
        self.catch_up()
        return bool(self._now[row]) if self._later[row] else None

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

    def why_nowhere(self, dimensions: Dimensions) -> Counter[str]:
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

    def could_ever(self) -> bool:
        """Whether an allowed node would have room if it were empty."""
        return bool((self._open & fits(self._member.request, self._table.allocatable)).any())

    def catch_up(self) -> None:
        """Look again at the rows that were touched since the last look."""
        touched = self._table.touched
        if self._seen == len(touched):
            return
        fresh = touched[self._seen :]
        self._seen = len(touched)
        if len(fresh) == 1 and not self._wide:
            self._renew(slice(fresh[0], fresh[0] + 1))
        else:
            self._renew(np.unique(np.array(fresh, dtype=np.intp)))

    def _renew(self, rows: Rows) -> None:
        request, table = self._member.request, self._table
        if self._changing:
            refused = _any_of((r for voice in self._changing for r in voice(rows)), len(self._scores[rows]))
            self._narrow[rows] = self._open[rows] & ~refused
        total: Vector = np.zeros(len(self._scores[rows]))
        for scorer in self._scorers:
            total += scorer(self._member, table, rows)
        self._scores[rows] = total
        if self._wide:
            rows = ALL
            self.allowed = self._narrow & ~_any_of((r for voice in self._wide for r in voice()), len(table))
        else:
            self.allowed[rows] = self._narrow[rows]
        self._later[rows] = self.allowed[rows] & fits(request, table.future(rows))
        self._now[rows] = self._later[rows] & fits(request, table.idle[rows])


def _any_of(refusals: Iterable[Refusal], count: int) -> Mask:
    refused = np.zeros(count, dtype=bool)
    for refusal in refusals:
        refused |= refusal.mask
    return refused
