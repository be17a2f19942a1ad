"""Where a class of tasks may go, and how much each place is liked: kept between placements, renewed where touched.

Tasks with the same request and conditions form a class. Per class there is a mask of nodes that the predicates allow
(and, for those they refuse, why), and a score per node. After a placement only the touched rows are looked at again.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from hekla.engine.columns import Dimensions, Mask, NodeTable, Rows, Vector, fits
from hekla.engine.gangs import Member

Predicate = Callable[[Member, NodeTable], Sequence[tuple[Mask, str]]]
"""For a class: masks of the nodes that are refused, each with the reason."""
Scorer = Callable[[Member, NodeTable, Rows], Vector]
"""For a class and some rows: what each of them is worth, already weighted."""


class Places:
    """The places of one class of tasks."""

    def __init__(
        self, member: Member, table: NodeTable, predicates: Sequence[Predicate], scorers: Sequence[Scorer]
    ) -> None:
        self._member, self._table, self._scorers = member, table, scorers
        self.refusals = [refusal for predicate in predicates for refusal in predicate(member, table)]
        self.allowed = np.ones(len(table), dtype=bool)
        for mask, _ in self.refusals:
            self.allowed &= ~mask
        self._scores = np.zeros(len(table))
        self._now = np.zeros(len(table), dtype=bool)
        self._later = np.zeros(len(table), dtype=bool)
        self._seen = len(table.touched)
        self._renew(slice(None))

    def best(self) -> tuple[int, bool] | None:
        """The best row and whether there is room now (else: once something is released). None: nowhere."""
        self._catch_up()
        for mask, now in ((self._now, True), (self._later, False)):
            if mask.any():
                return int(np.where(mask, self._scores, -np.inf).argmax()), now
        return None

    def why_nowhere(self, dimensions: Dimensions) -> Counter[str]:
        """How many nodes refuse, by reason; the first reason of a node counts."""
        counts: Counter[str] = Counter()
        left = np.ones(len(self._table), dtype=bool)
        for mask, reason in self.refusals:
            counts[reason] += int((mask & left).sum())
            left &= ~mask
        future = self._table.future()
        for at, name in enumerate(dimensions.names):
            short = left & (self._member.request[at] > future[:, at] + 0.1)
            word = "too many pods" if name == "pods" else f"insufficient {name}"
            counts[word] += int(short.sum())
            left &= ~short
        return +counts

    def could_ever(self) -> bool:
        """Whether an allowed node would have room if it were empty."""
        return bool((self.allowed & fits(self._member.request, self._table.allocatable)).any())

    def _catch_up(self) -> None:
        touched = self._table.touched
        if self._seen == len(touched):
            return
        fresh = touched[self._seen :]
        self._seen = len(touched)
        if len(fresh) == 1:
            self._renew(slice(fresh[0], fresh[0] + 1))
        else:
            self._renew(np.unique(np.array(fresh, dtype=np.intp)))

    def _renew(self, rows: Rows) -> None:
        request, table = self._member.request, self._table
        self._now[rows] = self.allowed[rows] & fits(request, table.idle[rows])
        self._later[rows] = self.allowed[rows] & fits(request, table.future(rows))
        total: Vector = np.zeros(len(self._scores[rows]))
        for scorer in self._scorers:
            total += scorer(self._member, table, rows)
        self._scores[rows] = total
