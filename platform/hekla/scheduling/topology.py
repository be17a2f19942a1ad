"""The hypernodes of a cluster, from labels of its nodes.

The cluster's configuration names the labels, the widest first, for example zone and rack. Nodes with the same values of
all labels up to one of them form a hypernode. The last label has tier 1; each tier is named after its label.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hekla.engine.model import HyperNode, NodeSpec

_SETTING = "topology_labels"


def topology_labels(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The node labels that a cluster's configuration names, the widest first."""
    found = config.get(_SETTING)
    return tuple(map(str, found)) if isinstance(found, list) else ()


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
