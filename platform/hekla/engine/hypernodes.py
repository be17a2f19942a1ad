"""Volcano's hypernodes as a tree over rows of the node table (`volcano-spec` §1.4, §5.6).

The parent of a hypernode is the smallest one of a higher tier that holds all its nodes, else the top hypernode: the
whole cluster, with a tier of its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hekla.engine.columns import NodeTable
from hekla.engine.model import HyperNode, NetworkTopology

TOP = "<cluster-top-hypernode>"


class HyperNodeInfo:
    """A hypernode in the session. `rows`: its nodes, ascending."""

    def __init__(self, name: str, tier: int, tier_name: str, rows: npt.NDArray[np.intp]) -> None:
        self.name, self.tier, self.tier_name, self.rows = name, tier, tier_name, rows
        self.index = 0
        """Its index in `HyperNodeTree.all`."""
        self.parent: HyperNodeInfo | None = None
        self.children: list[HyperNodeInfo] = []

    def ancestors(self) -> Iterator["HyperNodeInfo"]:
        """Itself and its parents, up to the whole cluster."""
        hypernode: HyperNodeInfo | None = self
        while hypernode is not None:
            yield hypernode
            hypernode = hypernode.parent

    def descendants(self) -> Iterator["HyperNodeInfo"]:
        """Itself and all below it."""
        yield self
        for child in self.children:
            yield from child.descendants()

    @cached_property
    def descendant_indices(self) -> npt.NDArray[np.intp]:
        """The indices of itself and of all below it."""
        return np.array([hypernode.index for hypernode in self.descendants()], dtype=np.intp)

    def is_within(self, other: "HyperNodeInfo") -> bool:
        return any(hypernode is other for hypernode in self.ancestors())


class HyperNodeTree:
    """All hypernodes, sorted by tier and name; the last is the whole cluster."""

    def __init__(self, hyper_nodes: Sequence[HyperNode], table: NodeTable) -> None:
        self.lowest_tier = min((node.tier for node in hyper_nodes), default=1)
        highest = max((node.tier for node in hyper_nodes), default=0)
        self.top = HyperNodeInfo(TOP, highest + 1, "", np.arange(len(table), dtype=np.intp))
        named = [_hypernode(node, table) for node in sorted(hyper_nodes, key=lambda node: (node.tier, node.name))]
        self.all = [*named, self.top]
        for at, hypernode in enumerate(self.all):
            hypernode.index = at
        self.leaf_of_row = [self.top] * len(table)
        """Per row its lowest hypernode."""
        self._link()

    def _link(self) -> None:
        """Set parents and leaves, from the widest hypernode to the narrowest."""
        enclosing = list(self.leaf_of_row)
        for hypernode in reversed(self.all[:-1]):
            parents = {id(enclosing[row]): enclosing[row] for row in hypernode.rows}
            around_all = next(iter(parents.values())) if len(parents) == 1 else self.top
            hypernode.parent = around_all if around_all.tier > hypernode.tier else self.top
            hypernode.parent.children.insert(0, hypernode)
            for row in hypernode.rows:
                enclosing[row] = hypernode
        self.leaf_of_row = enclosing

    def highest_tier(self, topology: NetworkTopology | None) -> int:
        """The highest tier that a topology allows; that of the cluster if it is soft or names none."""
        if topology is None or not topology.is_hard:
            return self.top.tier
        if topology.highest_tier_name:
            tiers = (hypernode.tier for hypernode in self.all[:-1] if hypernode.tier_name == topology.highest_tier_name)
            return next(tiers, self.top.tier)
        return self.top.tier if topology.highest_tier is None else topology.highest_tier


class HyperNodeTotals:
    """The resources of each hypernode, one row each; `refresh` follows the node table."""

    def __init__(self, hypernodes: HyperNodeTree, table: NodeTable) -> None:
        self._table, self._log_position = table, len(table.change_log)
        self._ancestors_of_row: list[list[int]] = [[] for _ in range(len(table))]
        for hypernode in hypernodes.all:
            for row in hypernode.rows.tolist():
                self._ancestors_of_row[row].append(hypernode.index)
        self._used, self._future_idle = table.used.copy(), table.future_idle()
        self.allocatable = np.array([table.allocatable[hypernode.rows].sum(axis=0) for hypernode in hypernodes.all])
        self.used = np.array([table.used[hypernode.rows].sum(axis=0) for hypernode in hypernodes.all])
        self.future_idle = np.array([self._future_idle[hypernode.rows].sum(axis=0) for hypernode in hypernodes.all])

    def refresh(self) -> "HyperNodeTotals":
        """Apply the changes of the node table since the last call."""
        touched = self._table.change_log
        for row in set(touched[self._log_position :]):
            used, future = self._table.used[row], self._table.future_idle(slice(row, row + 1))[0]
            self.used[self._ancestors_of_row[row]] += used - self._used[row]
            self.future_idle[self._ancestors_of_row[row]] += future - self._future_idle[row]
            self._used[row], self._future_idle[row] = used, future
        self._log_position = len(touched)
        return self


class PodDistribution:
    """How many pods of a job or sub-job each hypernode holds."""

    def __init__(self, hypernodes: HyperNodeTree, rows: Iterable[int]) -> None:
        self._domains = hypernodes
        self.counts = np.zeros(len(hypernodes.all))
        for row in rows:
            self.add(row, 1)

    def add(self, row: int, sign: int) -> None:
        """Count one pod more (sign 1) or less (-1) on this row."""
        for hypernode in self._domains.leaf_of_row[row].ancestors():
            self.counts[hypernode.index] += sign

    def lowest_common(self) -> HyperNodeInfo | None:
        """The lowest hypernode that holds all pods; None if there are none."""
        hypernode, total = self._domains.top, self.counts[-1]
        if not total:
            return None
        while (inner := next((d for d in hypernode.children if self.counts[d.index] == total), None)) is not None:
            hypernode = inner
        return hypernode


def _hypernode(node: HyperNode, table: NodeTable) -> HyperNodeInfo:
    rows = sorted(table.row_of[name] for name in node.nodes if name in table.row_of)
    return HyperNodeInfo(node.name, node.tier, node.tier_name, np.array(rows, dtype=np.intp))
