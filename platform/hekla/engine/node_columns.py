"""Arithmetic on the amounts of one node (numbers) or of many nodes (columns).

A score by resources is written once, column by column. For one node it is then computed with Python's floats, some ten
times faster than numpy computes arrays of length one; both follow IEEE 754, so the results are equal bit by bit.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hekla.engine.columns import Mask, NodeResources, Vector, fractions

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


@dataclass(slots=True)
class NodeColumns:
    """As `NodeResources`: by resource, one number or one column; and the requests that are placed there."""

    requests: RequestColumns
    allocatable: Sequence[Column]
    used: Sequence[Column]
    expected: Sequence[Column]
    nonzero_surplus: Sequence[Column]
    _everywhere: dict[int, bool] | None = None

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
        whole = self.allocatable[at]
        if isinstance(whole, float):
            return whole > 0
        if self._everywhere is None:
            self._everywhere = {}
        found = self._everywhere.get(at)
        if found is None:
            found = self._everywhere[at] = np.count_nonzero(whole) == len(whole)
        return found

    def part(self, at: int, amount: Column, *, otherwise: float) -> Column:
        """An amount as a part of what is allocatable of a resource; `otherwise` on nodes that have none."""
        whole = self.allocatable[at]
        if isinstance(whole, float):
            return amount / whole if whole > 0 else otherwise
        if self.has_everywhere(at):
            return amount / whole
        return fractions(np.asarray(amount), whole, otherwise=otherwise)


ColumnScorer = Callable[[NodeColumns], Column]


def floor(amount: Column) -> Column:
    """The largest whole number that is not greater."""
    return float(math.floor(amount)) if isinstance(amount, float) else np.floor(amount)


def square_root(amount: Column) -> Column:
    """The square root."""
    return math.sqrt(amount) if isinstance(amount, float) else np.sqrt(amount)


def smaller(amount: Column, other: Column) -> Column:
    """The smaller amount of each node."""
    if isinstance(amount, float) and isinstance(other, float):
        return amount if amount < other else other
    return np.minimum(amount, other)


def larger(amount: Column, other: Column) -> Column:
    """The larger amount of each node."""
    if isinstance(amount, float) and isinstance(other, float):
        return amount if amount > other else other
    return np.maximum(amount, other)


def choose(is_so: bool | Mask, amount: Column, otherwise: Column) -> Column:
    """For each node `amount` if the condition holds, else `otherwise`."""
    if isinstance(is_so, bool):
        return amount if is_so else otherwise
    return np.where(is_so, amount, otherwise)
