"""Arithmetic on the amounts of one node (numbers) or of many nodes (columns).

A score by resources is written once, column by column. For one node it is then computed with Python's floats, some ten
times faster than numpy computes arrays of length one; both follow IEEE 754, so the results are equal bit by bit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hekla.engine.columns import Mask, NodeResources, NodeTable, Vector, fractions

Column: TypeAlias = float | Vector
"""The amount of one node, or those of many."""


@dataclass(slots=True)
class NodeColumns:
    """As `NodeResources`: by resource, one number or one column."""

    allocatable: list[Column]
    used: list[Column]
    expected: list[Column]
    nonzero_surplus: list[Column]

    @classmethod
    def of(cls, resources: NodeResources) -> "NodeColumns":
        """Columns of many nodes."""
        amounts = resources.allocatable, resources.used, resources.expected, resources.nonzero_surplus
        return cls(*([*one.T] for one in amounts))

    @classmethod
    def of_row(cls, table: NodeTable, row: int) -> "NodeColumns":
        """The numbers of one node."""
        return cls(
            table.allocatable[row].tolist(),
            table.used[row].tolist(),
            table.expected[row].tolist(),
            table.nonzero_surplus[row].tolist(),
        )


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


def fraction(amount: Column, whole: Column, *, otherwise: float) -> Column:
    """`amount / whole`; `otherwise` where `whole` is 0."""
    if isinstance(amount, float) and isinstance(whole, float):
        return amount / whole if whole > 0 else otherwise
    return fractions(np.asarray(amount), np.asarray(whole), otherwise=otherwise)


def choose(is_so: bool | Mask, amount: Column, otherwise: Column) -> Column:
    """For each node `amount` if the condition holds, else `otherwise`."""
    if isinstance(is_so, bool):
        return amount if is_so else otherwise
    return np.where(is_so, amount, otherwise)
