"""Nodes as columns: one row per node (sorted by name), one column per resource, in float64.

`future_idle = idle + releasing - pipelined`, as in Volcano's NodeInfo. A placement changes one row.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from operator import lt
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from hekla.domain.resources import Resources
from hekla.engine.constraints import NONZERO_DEFAULTS
from hekla.engine.model import NodeSpec, PodStatus
from hekla.engine.node_states import NodeStates, RowList

if TYPE_CHECKING:
    from hekla.engine.state_scores import StateScores

Vector = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp] | slice

EPSILON = 0.1
"""Amounts that differ by less count as equal (`volcano-spec` §3.5)."""
_MANY = 256
"""From this number of rows on, it is faster to compare column by column."""
CARD_RESOURCES = frozenset({"volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"})
"""Resources of single cards, which nodes do not publish (`volcano-spec` §5.7)."""
_PLANES = ("idle", "used", "expected", "allocatable", "releasing", "pipelined")
"""The amounts of nodes that a table keeps in one array."""
_ROWS_AT_ONCE = 1024
"""How many nodes' states are copied together."""
_ALLOCATION = np.array([[-1.0], [1.0], [1.0]])
"""How an allocated amount changes the first three of them."""
Request = tuple[Vector, Vector, bool]
"""A request as a row, its non-zero surplus, and whether it is empty (best effort)."""


class Dimensions:
    """The resource names of a session in a fixed order, without those of single cards."""

    def __init__(self, amounts: Iterable[Iterable[str]]) -> None:
        names = {name for amount in amounts for name in amount} - CARD_RESOURCES
        self.names = ("cpu", "memory", "pods", *sorted(names - {"cpu", "memory", "pods"}))
        self._column = {name: at for at, name in enumerate(self.names)}
        self._requests: dict[Hashable, Request] = {}
        self._by_value: dict[bytes, Request] = {}
        self._rows: dict[tuple[tuple[str, float], ...], Vector] = {}
        self._limits: dict[tuple[tuple[str, float], ...], Vector] = {}
        self.without_pods: Mask = np.array([name != "pods" for name in self.names])
        """True for every dimension but the count of pods."""

    def covers(self, amounts: Iterable[Iterable[str]]) -> bool:
        """Whether it has all of these names."""
        known = CARD_RESOURCES.union(self.names)
        return all(known.issuperset(amount) for amount in amounts)

    def vector(self, amounts: Mapping[str, float]) -> Vector:
        """The amounts as a row."""
        row = np.zeros(len(self.names))
        for name, amount in amounts.items():
            if name not in CARD_RESOURCES:
                row[self._column[name]] = amount
        return row

    def row(self, amounts: Mapping[str, float]) -> Vector:
        """As `vector`; equal amounts give the same object, which must not be written to."""
        key = tuple(amounts.items())
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = self.vector(amounts)
        return found

    def limits(self, amounts: Mapping[str, float] | None) -> Vector:
        """Limits as a row, infinite where none is set. Equal ones give the same object, not to be written to."""
        key = tuple(amounts.items()) if amounts else ()
        found = self._limits.get(key)
        if found is None:
            row = [amounts[name] if amounts and name in amounts else np.inf for name in self.names]
            found = self._limits[key] = np.array(row, dtype=float)
        return found

    def matrix(self, amounts: Sequence[Mapping[str, float]]) -> Vector:
        """The amounts as rows."""
        rows = np.array([[amount.get(name, 0.0) for name in self.names] for amount in amounts])
        return rows.reshape(len(amounts), len(self.names))

    def request(self, amounts: Mapping[str, float], counted: Mapping[str, float] | None = None) -> "Request":
        """A pod's request as a row (1 in dimension `pods`) and its non-zero surplus (`NodeResources`).

        Equal requests give the same object.
        """
        key = tuple(amounts.items()), None if counted is None else tuple(counted.items())
        found = self._requests.get(key)
        if found is None:
            row = self.vector(amounts)
            row[self._column["pods"]] = row[self._column["pods"]] or 1.0
            surplus = (
                np.array([self._nonzero(amounts, counted, name) for name in NONZERO_DEFAULTS])
                - row[: len(NONZERO_DEFAULTS)]
            )
            is_empty = not any(name != "pods" for name in amounts)
            request = self._by_value.setdefault(row.tobytes() + surplus.tobytes(), (row, surplus, is_empty))
            found = self._requests[key] = request
        return found

    def _nonzero(self, amounts: Mapping[str, float], counted: Mapping[str, float] | None, name: str) -> float:
        return (amounts.get(name) or NONZERO_DEFAULTS[name]) if counted is None else counted.get(name, 0.0)

    def resources(self, row: Vector) -> Resources:
        """A row as amounts; negative ones become 0."""
        return Resources({name: n for name, n in zip(self.names, row.tolist(), strict=True) if n > 0})


@dataclass(frozen=True, slots=True)
class NodeResources:
    """Resources of some nodes, one row each. `used`: by pods on the node; `expected`: as scorers count.

    `nonzero_surplus`: cpu and memory that some scorers count on top, for containers without requests.
    """

    allocatable: Vector
    used: Vector
    expected: Vector
    nonzero_surplus: Vector


def fits(request: Vector, room: Vector) -> Mask:
    """Per row of `room`: whether the request fits, within the tolerance, in every dimension.

    `request`: one for all rows, or one row for each.
    """
    if room.ndim == 1 or len(room) < _MANY:
        requests = request.reshape(-1, room.shape[1]) if room.ndim > 1 else request
        answer: Mask = np.logical_and.reduce((room + EPSILON).T > requests.T)  # `all` does the same, but slower
        return answer
    answer = np.ones(len(room), dtype=bool)
    for requested, there in zip(request.T, room.T, strict=True):
        answer &= requested < there + EPSILON
    return answer


def fits_one(request: Vector, room: Vector) -> bool:
    """As `fits`, for one row of room: a few numbers are compared faster without numpy."""
    return all(map(lt, request.tolist(), (room + EPSILON).tolist()))


def fractions(amounts: Vector, whole: Vector, *, otherwise: float) -> Vector:
    """`amounts / whole`; `otherwise` where `whole` is 0."""
    if np.count_nonzero(whole) == whole.size:  # the usual case, and much faster for a few rows
        return amounts / whole
    found: Vector = np.divide(amounts, whole, out=np.full_like(whole, otherwise), where=whole > 0)
    return found


def share(part: Vector, whole: Vector) -> float:
    """The dominant share: the largest ratio over all dimensions; 1 where `whole` is 0 and `part` is not."""
    ratios = np.divide(part, whole, out=np.where(part > 0, 1.0, 0.0), where=whole > 0)
    return float(ratios.max(initial=0.0))


class PlacedPod(Protocol):
    """A pod that holds resources on a node."""

    request: Vector
    nonzero_surplus: Vector
    status: PodStatus


class NodeTable:
    """The nodes of a cluster and their resources. Each session gets a copy (`for_session`).

    All amounts lie in one array: a row of all of them is read or changed by one call, and on single rows it is the
    calls that cost. The attributes are views, to be changed in place only.
    """

    idle: Vector
    used: Vector
    expected: Vector
    """As Kubernetes' scorers count: `used` without evicted and with pipelined pods."""
    allocatable: Vector
    releasing: Vector
    pipelined: Vector

    def __init__(self, nodes: Sequence[NodeSpec], dimensions: Dimensions) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.name)
        self.row_of = {node.name: row for row, node in enumerate(self.nodes)}
        self.state_order = np.array([self.row_of[node.name] for node in nodes], dtype=np.intp)
        """Rows in the order of the state."""
        self._set_amounts(np.zeros((len(_PLANES), len(self.nodes), len(dimensions.names))))
        self.allocatable[:] = dimensions.matrix([node.allocatable for node in self.nodes])
        self.nonzero_surplus = np.zeros((len(self.nodes), len(NONZERO_DEFAULTS)))
        """See `NodeResources`. Within a session the plugin that needs it updates it."""
        self._start_session()

    def _set_amounts(self, amounts: npt.NDArray[np.float64]) -> None:
        self._amounts = amounts
        for name, plane in zip(_PLANES, amounts, strict=True):
            setattr(self, name, plane)

    def _start_session(self) -> None:
        """Reset the columns that only sessions change."""
        np.subtract(self.allocatable, self.used, out=self.idle)
        self.pipelined[:] = 0.0
        self.expected[:] = self.used
        self._change_counts, self._counted_changes = np.zeros(len(self.nodes), dtype=np.int64), 0
        self.has_reserved = bool(self.releasing.any())
        """Whether future idle may differ from idle."""
        self.change_log: list[int] = []
        """The row of every change, in order."""
        self.allocations: list[Vector | None] = []
        """The request of every change that was an allocation, in the same order; None of the others."""
        self._states: NodeStates | None = None
        self.unexamined: defaultdict[Hashable, deque[StateScores]] = defaultdict(deque)
        """By scorers: classes of pods for which no candidate was scored yet, in their order (`state_scores`)."""

    def for_session(self) -> "NodeTable":
        """A copy for one session."""
        found = copy(self)
        found._set_amounts(self._amounts.copy())
        found.nonzero_surplus = self.nonzero_surplus.copy()
        found._start_session()
        return found

    def recount(self, rows: Sequence[int], held: Iterable[tuple[int, "PlacedPod"]]) -> None:
        """Recompute these rows from the pods on them; `held`: pairs of row and pod."""
        for column in (self.used, self.releasing, self.nonzero_surplus):
            column[rows] = 0.0
        pairs = list(held)
        if not pairs:
            return
        at = np.array([row for row, _ in pairs])
        amounts = np.array([one.request for _, one in pairs])
        leaving = np.array([one.status is PodStatus.RELEASING for _, one in pairs])
        np.add.at(self.used, at, amounts)
        np.add.at(self.releasing, at[leaving], amounts[leaving])
        np.add.at(self.nonzero_surplus, at, np.array([one.nonzero_surplus for _, one in pairs]))

    def copy_usage(self, before: "NodeTable") -> None:
        """Copy the usage of the nodes that are in both tables."""
        names = self.row_of.keys() & before.row_of.keys()
        mine, old = [self.row_of[name] for name in names], [before.row_of[name] for name in names]
        for column in ("used", "releasing", "nonzero_surplus"):
            getattr(self, column)[mine] = getattr(before, column)[old]

    def update_node(self, node: NodeSpec, dimensions: Dimensions) -> None:
        """Replace a node by one of the same name."""
        row = self.row_of[node.name]
        self.nodes[row] = node
        self.allocatable[row] = dimensions.vector(node.allocatable)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def states(self) -> NodeStates:
        """Which rows have equal resources; built on first use in a session."""
        if self._states is None:
            self._states = NodeStates(self)
        return self._states

    @property
    def change_counts(self) -> npt.NDArray[np.int64]:
        """Per row the number of changes; the array is shared."""
        if self._counted_changes < len(self.change_log):
            np.add.at(self._change_counts, self.change_log[self._counted_changes :], 1)
            self._counted_changes = len(self.change_log)
        return self._change_counts

    def enlarge(self, more: Vector) -> None:
        """Add to the size of nodes, for this session."""
        self.allocatable += more
        self.idle += more
        self._states = None

    def resources(self, rows: RowList) -> NodeResources:
        """The resources of these rows."""
        return NodeResources(  # `take` is much faster than an index
            self.allocatable.take(rows, axis=0),
            self.used.take(rows, axis=0),
            self.expected.take(rows, axis=0),
            self.nonzero_surplus.take(rows, axis=0),
        )

    def amounts_of(self, row: int) -> list[list[float]]:
        """Of one row: idle, used, expected, allocatable, releasing and pipelined amounts."""
        found: list[list[float]] = self._amounts[:, row].tolist()
        return found

    def state_of(self, row: int) -> bytes:
        """All amounts of one row. Equal if and only if all amounts are, bit by bit."""
        found: bytes = self._amounts[:, row].tobytes() + self.nonzero_surplus[row].tobytes()
        return found

    def states_of_all(self) -> Iterator[bytes]:
        """`state_of` of each row, much faster than one by one."""
        for start in range(0, len(self.nodes), _ROWS_AT_ONCE):  # all rows at once would double the memory of a session
            part = slice(start, start + _ROWS_AT_ONCE)
            every = np.concatenate((*self._amounts[:, part], self.nonzero_surplus[part]), axis=1)
            width, data = every.shape[1] * every.itemsize, every.tobytes()
            yield from (data[at : at + width] for at in range(0, len(data), width))

    def future_idle(self, rows: Rows | int = slice(None)) -> Vector:
        """Idle resources once all releasing pods are gone, minus pipelined ones."""
        return self.idle[rows] + self.releasing[rows] - self.pipelined[rows]

    def allocate(self, row: int, request: Vector, sign: int = 1) -> None:
        """Allocate idle resources of a row (sign -1: undo)."""
        changed = self._amounts[:3, row]
        changed += _ALLOCATION * (request if sign > 0 else -request)
        self._log(row, request if sign > 0 else None)

    def pipeline(self, row: int, request: Vector, sign: int = 1) -> None:
        """Pipeline: reserve resources of a row that are being released (sign -1: undo)."""
        self.has_reserved = True
        self.pipelined[row] += sign * request
        self.expected[row] += sign * request
        self._log(row)

    def release(self, row: int, request: Vector, sign: int = 1, *, counts: bool = True) -> None:
        """Mark resources of a row as releasing (sign -1: undo); they stay used.

        `counts`: whether `expected` changes too.
        """
        self.has_reserved = True
        self.releasing[row] += sign * request
        if counts:
            self.expected[row] -= sign * request
        self._log(row)

    def _log(self, row: int, allocation: Vector | None = None) -> None:
        self.change_log.append(row)
        self.allocations.append(allocation)
