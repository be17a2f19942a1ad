"""The map of all nodes: cluster, rack, node; how much of each is allocated, and how much was measured as used.

Its cells are links that screen readers and the keyboard skip: the table below the map has the same ones.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil

from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from hekla.domain.resources import Resources
from hekla.pages.clusters.node_state import is_in_use, word_of_state
from hekla.pages.frame import html
from hekla.pages.frame.html import text
from hekla.pages.queues.figures import NodeView, bars, together
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
    cells: list[str] = field(default_factory=list)

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
    language, known = get_language(), dict[tuple[bool, bool, int, int], tuple[str, int]]()
    for view in views:
        node, name = view.node, view.node.rack
        # equal amounts are the same mapping (`Resources`), whose identity is found faster than its hash
        key = node.is_ready, node.is_cordoned, id(view.used.amounts), id(view.allocatable.amounts)
        found = known.get(key) or known.setdefault(
            key, _allocated(node.is_ready, node.is_cordoned, view.used, view.allocatable, language)
        )
        used = measured(view)
        bar = None if used is None else (round(used), step(used / 100))
        racks.setdefault(name, Rack(name)).cells.append(
            _cell(node.id, node.name, *found, is_in_use(node), bar, language)
        )
    return ClusterMap(cluster.name, cluster.is_simulated, _together(views), list(racks.values()))


def _together(views: Sequence[NodeView]) -> str:
    """The cards of these nodes in use and in all; without cards the CPUs."""
    whole = together(views)
    return _(", ").join(bar.words for bar in card_bars(whole) or bars_of(whole, "cpu"))


@lru_cache(maxsize=4 * MOST_CELLS)
def _cell(
    pk: int, name: str, words: str, shade: int, is_used: bool, bar: tuple[int, int] | None, _language: str | None
) -> str:
    """The cell of a node. `words` and `shade`: of its allocation; `is_used`: whether pods may start there; `bar`: its
    measured use in per cent, and the shade of that. Cached, since few nodes change between two requests.
    """
    inner = ""
    if bar is not None:
        words = f"{words} · {_('measured: %(n)d %%') % {'n': bar[0]}}"
        inner = f'<i class="heat-{bar[1]}"></i>'
    kind = f"heat heat-{shade}{'' if is_used else ' heat-out'}"
    address, title = html.address("clusters:node", pk), text(f"{name} · {words}")
    return f'<a class="{kind}" href="{address}" title="{title}" aria-label="{title}" tabindex="-1">{inner}</a>'


@lru_cache(maxsize=4096)
def _allocated(
    is_ready: bool, is_cordoned: bool, used: Resources, allocatable: Resources, _language: str | None
) -> tuple[str, int]:
    """The state and the allocation of a node in words, and its shade. Cached, since most nodes have the same ones."""
    whole = bars(used, allocatable)
    drawn = card_bars(whole) or bars_of(whole, "cpu")
    return " · ".join([word_of_state(is_ready, is_cordoned), *(bar.words for bar in drawn)]), step(share(drawn))


def step(part: float) -> int:
    """The shade of a share: 0 for nothing, then by quarters."""
    return max(0, min(STEPS, ceil(part * STEPS)))


def measured(view: NodeView) -> float | None:
    """The measured use in per cent, of its cards, else of its CPUs; None if it was not measured."""
    if view.usage is None:
        return None
    return view.usage.cpu if view.usage.busy is None else view.usage.busy
