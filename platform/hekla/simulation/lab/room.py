"""What is free on the nodes during a run: shows that a cycle could place nothing, without running it.

A bound from above. Only amounts count that nodes publish; taints, selectors and shares of queues only make the room
smaller. Numbers have more tolerance than the engine's.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from hekla.engine.columns import EPSILON, Vector
from hekla.engine.model import NodeSpec

_TOLERANCE = 2 * EPSILON
_ROUNDING = 1e-9
"""Of an amount: sums of large ones are not exact."""
Amounts = Mapping[str, float]


class FreeRoom:
    """The free amounts of the nodes."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._rows: dict[str, int] = {}
        self._whole: Vector = np.zeros((0, 0))
        self._held: Vector = np.zeros((0, 0))
        self._known: dict[int, tuple[Amounts, Vector]] = {}
        """By the identity of a request: its amounts as a row."""
        self._most: dict[tuple[int, ...], float] = {}
        """The results of `most` since the last change."""

    def set_nodes(self, nodes: Iterable[NodeSpec], held: Iterable[tuple[str, Amounts]]) -> None:
        """The nodes from now on, and what pods hold: node and request."""
        every = [*nodes]
        self._names = tuple(sorted({name for node in every for name in node.allocatable} - {"pods"}))
        self._rows = {node.name: row for row, node in enumerate(every)}
        self._known.clear()
        self._whole = np.array([self._row(node.allocatable) for node in every]).reshape(len(every), len(self._names))
        self._held = np.zeros_like(self._whole)
        self._most.clear()
        for node, request in held:
            self.hold(node, request, 1)

    def _row(self, amounts: Amounts) -> Vector:
        return np.array([amounts.get(name, 0.0) for name in self._names])

    def _request(self, request: Amounts) -> Vector:
        known = self._known.get(id(request))
        if known is None:
            known = self._known[id(request)] = request, self._row(request)
        return known[1]

    def hold(self, node: str, request: Amounts, sign: int) -> None:
        """A pod holds a node from now on (sign 1), or no more (-1)."""
        row = self._rows.get(node)
        if row is not None:
            self._held[row] += sign * self._request(request)
            self._most.clear()

    def most(self, requests: Iterable[Amounts]) -> float:
        """At most so many pods with one of these requests have room now; infinite if one asks for nothing."""
        distinct = {id(one): one for one in requests}
        key = tuple(distinct)
        found = self._most.get(key)
        if found is None:
            found = self._most[key] = self._most_of([self._request(one) for one in distinct.values()])
        return found

    def _most_of(self, requests: list[Vector]) -> float:
        least = np.minimum.reduce(requests)
        requested = np.flatnonzero(least > 0)
        if not len(requested):
            return np.inf
        whole = self._whole[:, requested]
        free = whole * (1 + _ROUNDING) - self._held[:, requested] + _TOLERANCE
        return float(np.maximum(np.floor(free / least[requested]).min(axis=1), 0.0).sum())
