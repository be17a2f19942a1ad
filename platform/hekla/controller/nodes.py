"""Record the nodes of a cluster as its backend reports them."""

from datetime import datetime

from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import MAX_NODE_MESSAGE, Cluster, NodeFacts
from hekla.backends.base import Backend, NodeInfo


def refresh(cluster: Cluster, epoch: int, backend: Backend, *, now: datetime) -> None:
    """Record the nodes of the backend; only differences are written. Raises LeaseLost."""
    reported = {info.name: _facts(info) for info in backend.nodes()}
    services.observe_nodes(cluster, reported.values(), now=now, epoch=epoch)
    for node in selectors.nodes(cluster):
        if node.name not in reported:
            services.lose_node(node, epoch=epoch, now=now)


def _facts(info: NodeInfo) -> NodeFacts:
    return NodeFacts(
        info.name, info.allocatable.quantities(), dict(info.labels), info.ready, info.message[:MAX_NODE_MESSAGE]
    )
