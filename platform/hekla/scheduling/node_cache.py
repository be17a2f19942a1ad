"""The nodes of a snapshot, and the hypernodes that hold them. Only changed rows are read again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from sys import intern
from typing import Any

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster, Node
from hekla.engine import model
from hekla.scheduling import snapshot, topology


@dataclass(frozen=True, slots=True)
class CachedNode:
    """A node for the engine, with the columns of its row that it was made from.

    `levels`: the hypernodes that are reported to hold it. `images`: the digest of its images. `draining_since`: since
    when its pods are evicted; None: they are not.
    """

    facts: tuple[object, ...]
    levels: list[dict[str, Any]]
    images: str
    spec: model.NodeSpec
    draining_since: datetime | None = None


@dataclass
class NodeCache:
    """The nodes of one cluster. What is unchanged is the very same object as before."""

    _is_valid: bool = False
    _versions: Mapping[str, str] = field(default_factory=dict)
    """The versions of the rows that were read, by name."""
    _known: dict[str, CachedNode] = field(default_factory=dict)
    """By name, in their order."""
    _nodes: tuple[model.NodeSpec, ...] = ()
    _levels: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The hypernodes that are reported to hold each node."""
    _hypernodes: tuple[tuple[str, ...], tuple[model.NodeSpec, ...], tuple[model.HyperNode, ...]] = ((), (), ())
    """The hypernodes, and the labels and nodes that they were made from."""
    _images: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """The images of nodes by their digest. Nodes with the same images share them; their names are shared by all."""
    draining: Mapping[str, datetime] = field(default_factory=dict)
    """The nodes whose pods are evicted, as last read, and since when."""

    def invalidate(self) -> None:
        """Look for changed rows at the next call. Their versions tell of every change, also without an event."""
        self._is_valid = False

    def nodes(self, cluster: Cluster) -> tuple[model.NodeSpec, ...]:
        """The nodes, by name."""
        if not self._is_valid:
            self._read(cluster)
            found = tuple(known.spec for known in self._known.values())
            self._nodes = self._nodes if found == self._nodes else found
            self._is_valid = True
        return self._nodes

    def hypernodes(self, cluster: Cluster) -> tuple[model.HyperNode, ...]:
        """The hypernodes of these nodes."""
        nodes, labels = self.nodes(cluster), topology.topology_labels(cluster.config)
        known_labels, known_nodes, known = self._hypernodes
        if labels != known_labels or nodes is not known_nodes:
            found = topology.hypernodes(nodes, labels) if labels else topology.reported_hypernodes(self._levels)
            self._hypernodes = labels, nodes, known if found == known else found
        return self._hypernodes[-1]

    def _read(self, cluster: Cluster) -> None:
        """Read the rows whose version changed. One that changes meanwhile is read again the next time."""
        versions = clusters.node_versions(cluster)
        changed = [name for name, version in versions.items() if self._versions.get(name) != version]
        rows = clusters.nodes_of(cluster, changed).defer("cards") if changed else ()
        rows_by_name = {row.name: row for row in rows}
        self._read_images(cluster, versions, rows_by_name)
        nodes = ((name, self._node(rows_by_name.get(name), self._known.get(name))) for name in versions)
        self._known = {name: node for name, node in nodes if node is not None}
        self._versions = versions
        self.draining = {name: at for name, node in self._known.items() if (at := node.draining_since)}
        levels = {name: node.levels for name, node in self._known.items() if node.levels}
        if levels != self._levels:  # the nodes themselves can be unchanged
            self._levels, self._hypernodes = levels, ((), (), self._hypernodes[-1])

    def _read_images(self, cluster: Cluster, names: Mapping[str, str], rows: Mapping[str, Node]) -> None:
        unchanged = (node.images for name, node in self._known.items() if name in names and name not in rows)
        digests = {*unchanged, *(row.images_digest for row in rows.values())} - {""}
        missing = digests - self._images.keys()
        read = clusters.node_images(cluster, missing) if missing else {}
        named = {digest: {intern(name): size for name, size in images.items()} for digest, images in read.items()}
        self._images = {digest: images for digest, images in (self._images | named).items() if digest in digests}

    def _node(self, row: Node | None, known: CachedNode | None) -> CachedNode | None:
        """The node as read, or as known if it was not read; the same object for the engine if it is unchanged."""
        if row is None:
            return known
        images = self._images.get(row.images_digest, {})
        facts = (
            row.allocatable,
            row.labels,
            row.is_cordoned,
            row.is_ready,
            row.taints,
            row.annotations,
            images,
            row.numa,
        )
        is_unchanged = known is not None and known.facts == facts
        spec = known.spec if known is not None and is_unchanged else snapshot.node(row, images)
        return CachedNode(facts, row.hypernodes, row.images_digest, spec, row.draining_since)
