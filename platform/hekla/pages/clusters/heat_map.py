"""The map of all nodes: cluster, rack, node; how much of each is allocated, and how much was measured as used.

Its cells are links that screen readers and the keyboard skip: the table below the map has the same ones.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from markupsafe import escape as text

from hekla.apps.clusters.models import Node
from hekla.pages.clusters.node_state import is_in_use, state_word
from hekla.pages.frame import html
from hekla.pages.queues.figures import NodeView, together
from hekla.pages.queues.usage_cells import bars_of, card_bars, share

MOST_CELLS = 1000
"""At most this many nodes are drawn; the table has all."""
STEPS = 4
_LINE = 100
"""Cells of one element of the page."""


@dataclass
class Rack:
    """The nodes of one rack; `name`: empty if the cluster names none."""

    name: str
    cells: list[SafeString] = field(default_factory=list)

    @property
    def lines(self) -> list[SafeString]:
        """The cells, at most a hundred together."""
        return [SafeString("".join(self.cells[at : at + _LINE])) for at in range(0, len(self.cells), _LINE)]


@dataclass
class ClusterMap:
    """The nodes of one cluster by rack; `words`: its cards, or its CPUs where it has none, in use and in all."""

    name: str
    is_simulated: bool
    words: str
    racks: list[Rack]


def cluster_maps(views: Sequence[NodeView]) -> list[ClusterMap]:
    """The maps of the first thousand nodes, in their order."""
    found: dict[int, list[NodeView]] = defaultdict(list)
    for view in views[:MOST_CELLS]:
        found[view.node.cluster_id].append(view)
    return [_cluster_map(of) for of in found.values()]


def _cluster_map(views: Sequence[NodeView]) -> ClusterMap:
    cluster, racks = views[0].node.cluster, dict[str, Rack]()
    for view in views:
        name = _rack(view.node)
        racks.setdefault(name, Rack(name)).cells.append(_cell(view))
    return ClusterMap(cluster.name, cluster.is_simulated, _together(views), list(racks.values()))


def _rack(node: Node) -> str:
    """The closest hypernode, else the zone; empty without either."""
    closest = min(node.hypernodes, key=lambda level: level["tier"], default=None)
    return closest["name"] if closest else node.zone


def _together(views: Sequence[NodeView]) -> str:
    """The cards of these nodes in use and in all; without cards the CPUs."""
    whole = together(views)
    return _(", ").join(bar.words for bar in card_bars(whole) or bars_of(whole, "cpu"))


def _cell(view: NodeView) -> SafeString:
    node, bars = view.node, card_bars(view.bars) or bars_of(view.bars, "cpu")
    words = [node.name, state_word(node), *(bar.words for bar in bars)]
    used = measured(view)
    if used is not None:
        words.append(_("measured: %(n)d %%") % {"n": round(used)})
    inner = f'<i class="heat-{step(used / 100)}"></i>' if used is not None else ""
    kind = f"heat heat-{step(share(bars))}{'' if is_in_use(node) else ' heat-out'}"
    address, title = html.address("clusters:node", node.pk), text(" · ".join(words))
    return SafeString(
        f'<a class="{kind}" href="{address}" title="{title}" aria-label="{title}" tabindex="-1">{inner}</a>'
    )


def step(part: float) -> int:
    """The shade of a share: 0 for nothing, then by quarters."""
    return max(0, min(STEPS, ceil(part * STEPS)))


def measured(view: NodeView) -> float | None:
    """The measured use in per cent, of its cards, else of its CPUs; None if it was not measured."""
    if view.usage is None:
        return None
    cards = [card["busy"] for card in view.usage.cards]
    return sum(cards) / len(cards) if cards else view.usage.cpu
