"""The pages of nodes: all of them, and one."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import notices, selectors
from hekla.apps.clusters.selectors import NodeMeasurement
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Rights
from hekla.domain.resources import Resources
from hekla.lib import clock
from hekla.pages.clusters import draining, heat_map
from hekla.pages.clusters.node_state import state_badge
from hekla.pages.clusters.node_table import NODE_SEARCH, NodeRows, NodesTable
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import TextSearch, listing, listing_of
from hekla.pages.queues import figures, node_usage
from hekla.pages.queues.figures import NodeView
from hekla.scheduling import occupancy
from hekla.scheduling.occupancy import Occupancy


@require_safe
def nodes(request: HttpRequest) -> HttpResponse:
    """List all nodes, with a map of them."""
    user, rights = person(request), current_tenant.rights(request)
    since, drawn = _drawn(request.GET)
    found = listing(request, NodesTable, list(drawn.views), drawn.search, **_options(drawn, user, rights))
    return render(request, "clusters/nodes.html", {"since": since, **_parts(drawn), "nodes": found})


def node_parts(user: User, query: QueryDict) -> dict[str, Any]:
    """The live parts of the page of nodes."""
    _since, drawn = _drawn(query)
    options = _options(drawn, user, tenancy.rights(user))
    return {**_parts(drawn), "nodes": listing_of(query, NodesTable, list(drawn.views), drawn.search, **options)}


@dataclass(frozen=True)
class _Drawn:
    """All nodes with their usage and their map, as of `whole` and `usage`; only to be read, since requests share it.

    `map`: the map as HTML; `without_values`: the columns that no node has a value for; `rows`: those of the list.
    """

    whole: Occupancy
    usage: Mapping[int, NodeMeasurement]
    views: Sequence[NodeView]
    map: str
    without_values: tuple[str, ...]
    rows: NodeRows = field(default_factory=NodeRows)

    @cached_property
    def search(self) -> TextSearch:
        """The search of the list, which reads the text of each node once."""
        texts = {id(view): NODE_SEARCH.text(view).casefold() for view in self.views}
        return TextSearch(lambda view: texts[id(view)], NODE_SEARCH.hint, is_folded=True)

    def is_of(self, whole: Occupancy, usage: Mapping[int, NodeMeasurement]) -> bool:
        """Whether nothing has changed since."""
        return self.whole.nodes is whole.nodes and self.whole.machines is whole.machines and self.usage == usage


_last: dict[tuple[bool, str | None], _Drawn] = {}
"""What was drawn last: with demonstrations or not, in each language."""


def _drawn(query: QueryDict) -> tuple[int, _Drawn]:
    """The number of the last event, and the nodes as of that event."""
    whole, with_demonstrations = occupancy.now(), query.get("demonstrations") == "yes"
    usage = selectors.fresh_usage([node for node, _ in whole.nodes], now=clock.now(), with_cards=False)
    known = _last.get(key := (with_demonstrations, get_language()))
    if known is None or not known.is_of(whole, usage):
        views = figures.nodes(whole, with_demonstrations=with_demonstrations)
        node_usage.add_usage(views, usage)
        without = _without_values(views)
        known = _last[key] = _Drawn(whole, usage, views, _map(views, has_usage="measured" not in without), without)
    return whole.number, known


def _map(views: Sequence[NodeView], *, has_usage: bool) -> str:
    """The map as HTML; empty without nodes. `has_usage`: whether the usage of some node was measured."""
    facts = {
        "maps": heat_map.cluster_maps(views),
        "undrawn": max(0, len(views) - heat_map.MOST_CELLS),
        "steps": range(heat_map.STEPS + 1),
        "has_usage": has_usage,
    }
    return render_to_string("clusters/_heat_map.html", facts) if views else ""


def _without_values(views: Sequence[NodeView]) -> tuple[str, ...]:
    has = {
        "model": any(view.models for view in views),
        "cards": any(view.free_cards or view.models for view in views),
        "measured": any(view.usage for view in views),
    }
    return tuple(name for name, is_there in has.items() if not is_there)


def _parts(drawn: _Drawn) -> dict[str, Any]:
    """What stands above and below the table."""
    return {
        "apart": len(drawn.whole.nodes) - len(drawn.views),
        "notices": notices.everywhere(),
        "map": drawn.map,
    }


def _options(drawn: _Drawn, user: User, rights: Rights) -> dict[str, Any]:
    """How the table is made: with the jobs of the nodes of its page, and without columns that have no values."""

    def with_jobs(rows: list[NodeView]) -> list[NodeView]:
        own = [copy(row) for row in rows]
        figures.name_jobs(own, user, rights)
        return own

    hidden = () if accounts.may(user, Permission.MANAGE_CLUSTERS) else ("actions",)
    return {"rows": with_jobs, "exclude": (*drawn.without_values, *hidden), "facts": {"rows": drawn.rows}}


@require_safe
def show(request: HttpRequest, node_id: int) -> HttpResponse:
    """Show one node."""
    return render(request, "clusters/node.html", one_parts(person(request), node_id, current_tenant.rights(request)))


def one_parts(user: User, node_id: int, rights: Rights | None = None) -> dict[str, Any]:
    """The live parts of a node's page. `rights`: the person's rights, if already read. Raises NotFound."""
    whole, rights = occupancy.now(), rights or tenancy.rights(user)
    node = selectors.node(node_id)
    may_cordon = accounts.may(user, Permission.MANAGE_CLUSTERS)
    view = figures.node_view(whole, node, Resources.parse(node.allocatable))
    figures.name_jobs([view], user, rights)
    figures.name_cards([view], user, rights)
    node_usage.add_card_usage([view])
    return {
        "since": whole.number,
        "view": view,
        "node": node,
        "badge": state_badge(node),
        "drain": draining.progress(node) if may_cordon else None,
        "may_cordon": may_cordon,
    }
