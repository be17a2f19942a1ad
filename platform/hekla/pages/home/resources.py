"""The resources of the clusters that a person can use, on the home page."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hekla.apps.clusters.models import Cluster
from hekla.domain.card_resources import of_cards
from hekla.pages.queues import figures
from hekla.pages.queues.figures import NodeView, QueueView, UsageBar
from hekla.scheduling.occupancy import Occupancy

_MOST_OPEN = 3


@dataclass(frozen=True, slots=True)
class ClusterResources:
    """What a cluster has and has free. `is_open`: it is shown; the others are folded."""

    cluster: Cluster
    bars: Sequence[UsageBar]
    free: Sequence[str]
    slots: Sequence[dict[str, Any]]
    is_open: bool


def home_free(queues: Iterable[QueueView], whole: Occupancy) -> dict[str, Any]:
    """The clusters of these queues, the visible ones: first those with cards, and the simulated ones last.

    Those with cards are open, at most three; if there are none, the first.
    """
    usable = {view.queue.cluster_id for view in queues}
    by_cluster: defaultdict[int, list[NodeView]] = defaultdict(list)
    for view in figures.nodes(whole, with_demonstrations=False):
        if (cluster_id := view.node.cluster_id) in usable:
            by_cluster[cluster_id].append(view)
    grouped = sorted(by_cluster.values(), key=_turn)
    with_cards = sum(map(_has_cards, grouped))
    opened = min(max(with_cards, 1), _MOST_OPEN)
    found = [_resources(views, is_open=place < opened) for place, views in enumerate(grouped)]
    return {"clusters": found, "may_use": bool(usable)}


def _turn(views: Sequence[NodeView]) -> tuple[bool, bool, str]:
    cluster = views[0].node.cluster
    return not _has_cards(views), cluster.is_simulated, cluster.name


def _resources(views: Sequence[NodeView], *, is_open: bool) -> ClusterResources:
    whole = figures.capacity(views)
    return ClusterResources(views[0].node.cluster, whole.bars, whole.free, whole.slots, is_open)


def _has_cards(views: Iterable[NodeView]) -> bool:
    return any(any(view.allocatable.amount(name) for name in of_cards(view.allocatable)) for view in views)
