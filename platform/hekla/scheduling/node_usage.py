"""The measured usage of nodes, added to the nodes of a snapshot.

It changes more often than the nodes, and apart from them: it is read from rows of its own, without an event.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.engine.model import NodeSpec, NodeUsage

_Nodes = tuple[NodeSpec, ...]


@dataclass
class UsageCache:
    """The usage of the nodes of one cluster. What is unchanged is the very same object as before."""

    _usages: Mapping[str, NodeUsage] | None = None
    """By name; None: read it again."""
    _known: dict[str, tuple[NodeSpec, NodeUsage, NodeSpec]] = field(default_factory=dict)
    """By name: a node without and with its usage."""
    _last: tuple[_Nodes, Mapping[str, NodeUsage], _Nodes] = ((), {}, ())
    """The nodes and usages that were last put together, and the result."""

    def invalidate(self) -> None:
        """Read the usage again at the next snapshot: it was stored anew."""
        self._usages = None

    def added_to(self, nodes: _Nodes, cluster: Cluster) -> _Nodes:
        """These nodes with their usage."""
        if self._usages is None:
            self._usages = _read(cluster)
        last_nodes, last_usages, measured = self._last
        if nodes is not last_nodes or self._usages is not last_usages:
            measured = (
                tuple(self._measured(node, self._usages.get(node.name)) for node in nodes) if self._usages else nodes
            )
            self._last = nodes, self._usages, measured
        return measured

    def _measured(self, node: NodeSpec, usage: NodeUsage | None) -> NodeSpec:
        if usage is None:
            return node
        known = self._known.get(node.name)
        if known is None or known[0] is not node or known[1] != usage:
            known = self._known[node.name] = node, usage, replace(node, usage=usage)
        return known[2]


def _read(cluster: Cluster) -> Mapping[str, NodeUsage]:
    return {
        name: NodeUsage(cpu, memory, at.timestamp(), (float(whole_cpu), float(whole_memory)))
        for name, at, cpu, memory, whole_cpu, whole_memory in clusters.usage(cluster)
    }
