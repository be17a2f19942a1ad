"""The measured usage of nodes, added to the nodes of a snapshot.

It changes more often than the nodes, and apart from them: it is read from rows of its own, without an event.
"""

from collections.abc import Mapping, Sequence
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
    _last: tuple[_Nodes, Mapping[str, NodeUsage], _Nodes] = ((), {}, ())
    """The nodes and usages that were last put together, and the result."""

    def invalidate(self) -> None:
        """Read everything again at the next snapshot."""
        self._usages = None

    def update(self, stored: Sequence[UsageFacts]) -> None:
        """The usage of these nodes was stored anew."""
        if self._usages is not None and stored:
            news = ((one.name, one.at, one.cpu, one.memory, one.whole_cpu, one.whole_memory) for one in stored)
            self._usages = {**self._usages, **dict(map(_named, news))}

    def added_to(self, nodes: _Nodes, cluster: Cluster) -> _Nodes:
        """These nodes with their usage."""
        if self._usages is None:
            self._usages = _read(cluster)
        last_nodes, last_usages, measured = self._last
        if nodes is not last_nodes or self._usages is not last_usages:
            before, self._known = self._known, {}  # only of nodes that still exist
            measured = tuple(self._measured(node, before) for node in nodes) if self._usages else nodes
            self._last = nodes, self._usages, measured
        return measured

    def _measured(self, node: NodeSpec, before: Mapping[str, _Measured]) -> NodeSpec:
        usage = self._usages.get(node.name) if self._usages else None
        if usage is None:
            return node
        known = before.get(node.name)
        if known is None or known[0] is not node or not (known[1] is usage or known[1] == usage):
            known = node, usage, replace(node, usage=usage)
        self._known[node.name] = known
        return known[2]


def _read(cluster: Cluster) -> Mapping[str, NodeUsage]:
    return dict(map(_named, clusters.usage(cluster)))


def _named(row: tuple[str, datetime, float, float, int, int]) -> tuple[str, NodeUsage]:
    name, at, cpu, memory, whole_cpu, whole_memory = row
    return name, NodeUsage(cpu, memory, at.timestamp(), (float(whole_cpu), float(whole_memory)))
