"""The machines of a cluster, as its backend reports them."""

from datetime import datetime

from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import Cluster
from hekla.backends.base import Backend


def refresh(cluster: Cluster, epoch: int, backend: Backend, *, now: datetime) -> None:
    """Take down what machines there are; only differences are written. Raises LeaseLost."""
    reported = {info.name: info for info in backend.nodes()}
    for info in reported.values():
        services.observe_node(
            cluster,
            name=info.name,
            allocatable=info.allocatable.quantities(),
            labels=info.labels,
            ready=info.ready,
            message=info.message,
            now=now,
            epoch=epoch,
        )
    for node in selectors.nodes(cluster):
        if node.name not in reported:
            services.lose_node(node, epoch=epoch, now=now)
