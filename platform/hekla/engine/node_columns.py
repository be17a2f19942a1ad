"""Arithmetic on the amounts of one node (numbers) or of many nodes (columns).

A score by resources is written once, column by column. For one node it is then computed with Python's floats, some ten
times faster than numpy computes arrays of length one; both follow IEEE 754, so the results are equal bit by bit.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from hekla.engine.columns import NodeResources, Vector, fractions

Column: TypeAlias = float | Vector
"""The amount of one node, or those of many."""


@dataclass(frozen=True, slots=True)
class RequestColumns:
    """What pods request by resource: numbers for one class of pods, or columns with the class of each node.

    `counted`: cpu and memory with the non-zero surplus, as some scorers count. `request`: the amounts, in rows.
    """

    amounts: list[Column]
    counted: list[Column]
    request: Vector

    @classmethod
    def of(cls, request: Vector, nonzero_surplus: Vector) -> "RequestColumns":
        """The columns of one class, given its request as a vector, or of several, one row each."""
        counted = request[..., : nonzero_surplus.shape[-1]] + nonzero_surplus
        if request.ndim == 1:
            return cls(request.tolist(), counted.tolist(), request)
        return cls([*request.T], [*counted.T], request)


class Arithmetic(NamedTuple):
    """Functions of numbers or of columns. `choose`: the first amount if the condition holds, else the second."""

    floor: Callable[[Any], Any]
    square_root: Callable[[Any], Any]
    smaller: Callable[[Any, Any], Any]
    larger: Callable[[Any, Any], Any]
    choose: Callable[[Any, Any, Any], Any]


@dataclass(slots=True)
class NodeColumns:
    """As `NodeResources`: by resource, one number or one column; and the requests that are placed there."""

    requests: RequestColumns
    allocatable: Sequence[Column]
    used: Sequence[Column]
    expected: Sequence[Column]
    nonzero_surplus: Sequence[Column]
    _everywhere: dict[int, bool] | None = None
    arithmetic: ClassVar[Arithmetic] = Arithmetic(np.floor, np.sqrt, np.minimum, np.maximum, np.where)

    @classmethod
    def of(cls, resources: NodeResources, requests: RequestColumns) -> "NodeColumns":
        """Columns of many nodes."""
        return cls(
            requests,
            [*resources.allocatable.T],
            [*resources.used.T],
            [*resources.expected.T],
            [*resources.nonzero_surplus.T],
        )

    def has_everywhere(self, at: int) -> bool:
        """Whether each of the nodes has some of a resource: the usual case, in which parts cost much less."""
        if self._everywhere is None:
            self._everywhere = {}
        found = self._everywhere.get(at)
        if found is None:
            found = self._everywhere[at] = bool(np.all(self.allocatable[at]))
        return found

    def part(self, at: int, amount: Column, otherwise: float) -> Column:
        """An amount as a part of what is allocatable of a resource; `otherwise` on nodes that have none."""
        if self.has_everywhere(at):
            return amount / self.allocatable[at]
        return fractions(np.asarray(amount), np.asarray(self.allocatable[at]), otherwise=otherwise)


@dataclass(slots=True)
class NodeNumbers(NodeColumns):
    """The same of one node, as numbers."""

    arithmetic: ClassVar[Arithmetic] = Arithmetic(
        math.floor, math.sqrt, min, max, lambda is_so, amount, otherwise: amount if is_so else otherwise
    )

    def has_everywhere(self, at: int) -> bool:
        """Whether the node has some of a resource."""
        return bool(self.allocatable[at] > 0)

    def part(self, at: int, amount: Column, otherwise: float) -> Column:
        """An amount as a part of what is allocatable of a resource; `otherwise` if the node has none."""
        whole = self.allocatable[at]
        return amount / whole if whole > 0 else otherwise


ColumnScorer = Callable[[NodeColumns], Column]
