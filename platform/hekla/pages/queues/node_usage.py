"""The measured usage of nodes and cards, for the page of nodes."""

from collections.abc import Mapping, Sequence

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.selectors import NodeMeasurement
from hekla.lib import clock
from hekla.pages.queues.figures import NodeView


def add_usage(views: Sequence[NodeView], usage: Mapping[int, NodeMeasurement]) -> None:
    """Add to each node what was measured there, by row id."""
    for view in views:
        view.usage = usage.get(view.node.id)  # not pk, which costs two calls for each of thousands


def add_card_usage(views: Sequence[NodeView]) -> None:
    """Add to each node what was measured there in the last minutes, and to its cards their part."""
    found = clusters.fresh_usage([view.node for view in views], now=clock.now())
    for view in views:
        view.usage = found.get(view.node.pk)
        by_card = {(one["resource"], one["index"]): one for one in view.usage.cards} if view.usage else {}
        for card in view.cards:
            card.usage = by_card.get((card.card.resource, card.card.index))
