"""Nodes as columns: one row a node (in order of their names), one column a resource, in float64.

`future = idle + releasing - pipelined` is what a node will have once what ends has ended. A placement touches one row.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hekla.domain.resources import Resources
from hekla.engine.conditions import LITTLE
from hekla.engine.model import Node, TaskStatus

Vector = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp] | slice

EPSILON = 0.1
"""Amounts that differ by less count as equal (`volcano-spec` §3.5)."""
_MANY = 256
"""From so many rows on it is faster to go through the columns one by one."""
OF_CARDS = frozenset({"volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"})
"""What is asked of a card and not of a node, which does not offer it (`volcano-spec` §5.7)."""
Request = tuple[Vector, Vector, bool]
"""A request as a row, what scorers count beyond it, and whether it asks for nothing at all."""


class Dimensions:
    """The resource names of a session, in a fixed order; what is asked of single cards is none."""

    def __init__(self, amounts: Iterable[Iterable[str]]) -> None:
        names = {name for amount in amounts for name in amount} - OF_CARDS
        self.names = ("cpu", "memory", "pods", *sorted(names - {"cpu", "memory", "pods"}))
        self._place = {name: at for at, name in enumerate(self.names)}
        self._requests: dict[Hashable, Request] = {}
        self._by_value: dict[bytes, Request] = {}
        self._rows: dict[tuple[tuple[str, float], ...], Vector] = {}

    def know(self, amounts: Iterable[Iterable[str]]) -> bool:
        """Whether all of these names are among them."""
        known = OF_CARDS.union(self.names)
        return all(known.issuperset(amount) for amount in amounts)

    def vector(self, amounts: Mapping[str, float]) -> Vector:
        """The amounts as a row."""
        row = np.zeros(len(self.names))
        for name, amount in amounts.items():
            if name not in OF_CARDS:
                row[self._place[name]] = amount
        return row

    def row(self, amounts: Mapping[str, float]) -> Vector:
        """As `vector`. Equal amounts are one and the same row, which nobody may write to."""
        key = tuple(amounts.items())
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = self.vector(amounts)
        return found

    def matrix(self, amounts: Sequence[Mapping[str, float]]) -> Vector:
        """The amounts as rows."""
        rows = np.array([[amount.get(name, 0.0) for name in self.names] for amount in amounts])
        return rows.reshape(len(amounts), len(self.names))

    def request(self, amounts: Mapping[str, float], counted: Mapping[str, float] | None = None) -> "Request":
        """What a task asks for, as a row with its one pod, and the cpu and memory that scorers count beyond that.

        Equal requests (of which equal amounts are counted) are one and the same row.
        """
        key = tuple(amounts.items()), None if counted is None else tuple(counted.items())
        found = self._requests.get(key)
        if found is None:
            row = self.vector(amounts)
            row[self._place["pods"]] = row[self._place["pods"]] or 1.0
            surplus = np.array([self._counted(amounts, counted, name) for name in LITTLE]) - row[: len(LITTLE)]
            is_empty = not any(name != "pods" for name in amounts)
            request = self._by_value.setdefault(row.tobytes() + surplus.tobytes(), (row, surplus, is_empty))
            found = self._requests[key] = request
        return found

    def _counted(self, amounts: Mapping[str, float], counted: Mapping[str, float] | None, name: str) -> float:
        return (amounts.get(name) or LITTLE[name]) if counted is None else counted.get(name, 0.0)

    def resources(self, row: Vector) -> Resources:
        """A row as amounts; what is below zero shows as nothing."""
        return Resources({name: max(0.0, float(n)) for name, n in zip(self.names, row, strict=True)})

    @property
    def without_pods(self) -> Mask:
        """True for every dimension but the count of pods."""
        return np.array([name != "pods" for name in self.names])


@dataclass(frozen=True, slots=True)
class Use:
    """What nodes have and what is used of it, a row each: `used` by what holds a place, `expected` as scorers count.

    `surplus`: cpu and memory that some scorers count beyond that, for containers that ask for nothing.
    """

    allocatable: Vector
    used: Vector
    expected: Vector
    surplus: Vector


def fits(request: Vector, room: Vector) -> Mask:
    """Per row of `room`: whether the request fits, within the tolerance, in every dimension."""
    if room.ndim == 1 or len(room) < _MANY:
        answer: Mask = np.all(request < room + EPSILON, axis=-1)
    else:
        columns = zip(request.T, room.T, strict=True)
        answer = np.logical_and.reduce([asked < there + EPSILON for asked, there in columns])
    return answer


def parts(amounts: Vector, whole: Vector, *, otherwise: float) -> Vector:
    """What part of the whole these are; `otherwise` where there is nothing of it."""
    if whole.all():  # the rule, and much quicker for a few rows
        return amounts / whole
    found: Vector = np.divide(amounts, whole, out=np.full_like(whole, otherwise), where=whole > 0)
    return found


def share(part: Vector, whole: Vector) -> float:
    """The largest ratio over all dimensions; use of what there is none of counts as all of it."""
    ratios = np.divide(part, whole, out=np.where(part > 0, 1.0, 0.0), where=whole > 0)
    return float(ratios.max(initial=0.0))


class Held(Protocol):
    """A task that holds a place."""

    request: Vector
    surplus: Vector
    status: TaskStatus


class NodeTable:
    """The nodes of a cluster and what they have left. What is kept is copied for each session (`for_session`)."""

    def __init__(self, nodes: Sequence[Node], dimensions: Dimensions) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.name)
        self.row_of = {node.name: row for row, node in enumerate(self.nodes)}
        self.listed = np.array([self.row_of[node.name] for node in nodes], dtype=np.intp)
        """The rows in the order in which the nodes were given."""
        self.allocatable = dimensions.matrix([node.allocatable for node in self.nodes])
        self.used, self.releasing = np.zeros_like(self.allocatable), np.zeros_like(self.allocatable)
        self.surplus = np.zeros((len(self.nodes), len(LITTLE)))
        """What some scorers count beyond `used` (`Use`); within a session it is kept by who asks for it."""
        self._begin()

    def _begin(self) -> None:
        """What holds at the beginning of a session."""
        self.idle = self.allocatable - self.used
        self.pipelined = np.zeros_like(self.used)
        self.expected = self.used.copy()
        """What Kubernetes' scorers count: `used` without whom the session evicts and with whom it promises a place."""
        self.changes = np.zeros(len(self.nodes), dtype=np.int64)
        """How often each row was changed."""
        self.touched: list[tuple[int, Vector | None]] = []
        """Every change in order: the row, and what was taken from it (None: something else happened)."""

    def for_session(self) -> "NodeTable":
        """A table to change at will, which begins as this one."""
        found = copy(self)
        for column in ("allocatable", "used", "releasing", "surplus"):
            setattr(found, column, getattr(self, column).copy())
        found._begin()
        return found

    def count(self, rows: Sequence[int], held: Iterable[tuple[int, "Held"]]) -> None:
        """Reckon anew what is used of these rows: all that holds a place on one of them, with its row."""
        for column in (self.used, self.releasing, self.surplus):
            column[rows] = 0.0
        pairs = list(held)
        if not pairs:
            return
        at = np.array([row for row, _ in pairs])
        amounts = np.array([one.request for _, one in pairs])
        leaving = np.array([one.status is TaskStatus.RELEASING for _, one in pairs])
        np.add.at(self.used, at, amounts)
        np.add.at(self.releasing, at[leaving], amounts[leaving])
        np.add.at(self.surplus, at, np.array([one.surplus for _, one in pairs]))

    def inherit(self, before: "NodeTable") -> None:
        """What is used of the nodes that were there before."""
        names = self.row_of.keys() & before.row_of.keys()
        mine, old = [self.row_of[name] for name in names], [before.row_of[name] for name in names]
        for column in ("used", "releasing", "surplus"):
            getattr(self, column)[mine] = getattr(before, column)[old]

    def renew(self, node: Node, dimensions: Dimensions) -> None:
        """A node of the same name offers something else, or says something else of itself."""
        row = self.row_of[node.name]
        self.nodes[row] = node
        self.allocatable[row] = dimensions.vector(node.allocatable)

    def __len__(self) -> int:
        return len(self.nodes)

    def use(self, rows: Rows) -> Use:
        """What these rows have and what is used of it."""
        return Use(self.allocatable[rows], self.used[rows], self.expected[rows], self.surplus[rows])

    def future(self, rows: Rows | int = slice(None)) -> Vector:
        """What will be free once everything that ends has ended."""
        return self.idle[rows] + self.releasing[rows] - self.pipelined[rows]

    def take(self, row: int, request: Vector, sign: int = 1) -> None:
        """A pod takes its place (or, with sign -1, gives it back)."""
        self.idle[row] -= sign * request
        self.used[row] += sign * request
        self.expected[row] += sign * request
        self._touch(row, request if sign > 0 else None)

    def _touch(self, row: int, taken: Vector | None) -> None:
        self.changes[row] += 1
        self.touched.append((row, taken))

    def promise(self, row: int, request: Vector, sign: int = 1) -> None:
        """A pod is promised what will be released (or not any more)."""
        self.pipelined[row] += sign * request
        self.expected[row] += sign * request
        self._touch(row, None)

    def release(self, row: int, request: Vector, sign: int = 1, *, counts: bool = True) -> None:
        """A pod on this node is on its way out (or not any more); it still holds its place.

        `counts`: scorers have counted it, or will again.
        """
        self.releasing[row] += sign * request
        if counts:
            self.expected[row] -= sign * request
        self._touch(row, None)
