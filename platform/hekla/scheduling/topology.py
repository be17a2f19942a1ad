"""The hypernodes of a cluster: from labels of its nodes, else from what its backend reports of each node.

The cluster's configuration names the labels, the widest first, for example zone and rack. Nodes with the same values of
all labels up to one of them form a hypernode. The last label has tier 1; each tier is named after its label.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.engine.model import HyperNode, NodeSpec

_SETTING = "topology_labels"


def topology_labels(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The node labels that a cluster's configuration names, the widest first."""
    found = config.get(_SETTING)
    return tuple(map(str, found)) if isinstance(found, list) else ()


def tier_names(cluster: Cluster, reported: Sequence[str] | None = None) -> Sequence[str]:
    """The names of the tiers of its hypernodes, the widest first. `reported`: those that it reports, if read."""
    return topology_labels(cluster.config) or (clusters.reported_tiers(cluster) if reported is None else reported)


def hypernodes(nodes: Iterable[NodeSpec], labels: Sequence[str]) -> tuple[HyperNode, ...]:
    """The hypernodes, by tier and name. A name has the values of the wider labels too: `a/r1` is rack r1 of zone a."""
    members: dict[tuple[int, str], set[str]] = defaultdict(set)
    for node in nodes:
        values = [node.labels.get(label, "") for label in labels]
        for place, value in enumerate(values):
            if value:
                members[len(labels) - place, "/".join(values[: place + 1])].add(node.name)
    return tuple(
        HyperNode(name, tier, frozenset(names), labels[-tier]) for (tier, name), names in sorted(members.items())
    )


def reported_hypernodes(levels: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[HyperNode, ...]:
    """The hypernodes, by tier and name, from those that are reported to hold each node.

    Facts of nodes change one after the other. Meanwhile the lowest tier of a hypernode counts.
    """
    members: dict[str, set[str]] = defaultdict(set)
    tiers: dict[str, tuple[int, str]] = {}
    for node, held in levels.items():
        for level in held:
            name, tier = level["name"], (level["tier"], level["tier_name"])
            members[name].add(node)
            tiers[name] = min(tier, tiers.get(name, tier))
    found = (HyperNode(name, tiers[name][0], frozenset(names), tiers[name][1]) for name, names in members.items())
    return tuple(sorted(found, key=lambda one: (one.tier, one.name)))
