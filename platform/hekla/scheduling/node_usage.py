"""The measured usage of nodes, added to the nodes of a snapshot.

It changes more often than the nodes, and apart from them: it is read from rows of its own, without an event.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster, UsageFacts
from hekla.engine.model import NodeSpec, NodeUsage

_Nodes = tuple[NodeSpec, ...]
_Measured = tuple[NodeSpec, NodeUsage, NodeSpec]
"""A node without and with its usage."""


@dataclass
class UsageCache:
    """The usage of the nodes of one cluster. What is unchanged is the very same object as before."""

    _usages: Mapping[str, NodeUsage] | None = None
    """By name; None: read it again."""
    _known: dict[str, _Measured] = field(default_factory=dict)
    """By name."""
    _last: tuple[_Nodes, _Nodes] = ((), ())
    """The last nodes without usage, and with it."""
    _places: Mapping[str, int] = field(default_factory=dict)
    """Where each of the last nodes is, by name."""
    _changed: set[str] | None = None
    """The nodes whose usage changed after that; None: all."""

    def invalidate(self) -> None:
        """Read everything again at the next snapshot."""
        self._usages = self._changed = None

    def update(self, stored: Sequence[UsageFacts]) -> None:
        """The usage of these nodes was stored anew."""
        if self._usages is None or not stored:
            return
        news = ((one.name, one.at, one.cpu, one.memory, one.whole_cpu, one.whole_memory) for one in stored)
        self._usages = {**self._usages, **dict(map(_named, news))}
        if self._changed is not None:
            self._changed |= {one.name for one in stored}

    def added_to(self, nodes: _Nodes, cluster: Cluster) -> _Nodes:
        """These nodes with their usage."""
        if self._usages is None:
            self._usages = _read(cluster)
        last, measured = self._last
        if nodes is not last or self._changed is None:
            self._places = {node.name: place for place, node in enumerate(nodes)}
            before, self._known = self._known, {}  # only of nodes that still exist
            measured = tuple(self._measured(node, before) for node in nodes) if self._usages else nodes
        elif self._changed:
            measured = self._with_changed(nodes, list(measured), self._changed)
        self._last, self._changed = (nodes, measured), set()
        return measured

    def _with_changed(self, nodes: _Nodes, measured: list[NodeSpec], changed: Iterable[str]) -> _Nodes:
        for name in changed:
            if (place := self._places.get(name)) is not None:
                measured[place] = self._measured(nodes[place], self._known)
        return tuple(measured)

    def _measured(self, node: NodeSpec, before: Mapping[str, _Measured]) -> NodeSpec:
        usage = self._usages.get(node.name) if self._usages else None
        if usage is None:
            return node
        known = before.get(node.name)
        if known is None or known[0] is not node or known[1] != usage:
            known = node, usage, replace(node, usage=usage)
        self._known[node.name] = known
        return known[2]


def _read(cluster: Cluster) -> Mapping[str, NodeUsage]:
    return dict(map(_named, clusters.usage(cluster)))


def _named(row: tuple[str, datetime, float, float, int, int]) -> tuple[str, NodeUsage]:
    name, at, cpu, memory, whole_cpu, whole_memory = row
    return name, NodeUsage(cpu, memory, at.timestamp(), (float(whole_cpu), float(whole_memory)))
