"""The pages of nodes: all of them, and one."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import notices, selectors
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Rights
from hekla.domain.resources import Resources
from hekla.pages.clusters import heat_map
from hekla.pages.clusters.node_state import state_badge
from hekla.pages.clusters.node_table import NODE_SEARCH, NodesTable
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing, listing_of
from hekla.pages.queues import figures, node_usage
from hekla.pages.queues.figures import NodeView
from hekla.scheduling import occupancy


@require_safe
def nodes(request: HttpRequest) -> HttpResponse:
    """List all nodes, with a map of them."""
    user, rights = person(request), current_tenant.rights(request)
    since, views, apart = _views(request.GET)
    found = listing(request, NodesTable, views, NODE_SEARCH, **_options(views, user, rights))
    return render(request, "clusters/nodes.html", {"since": since, "apart": apart, **_parts(views), "nodes": found})


def node_parts(user: User, query: QueryDict) -> dict[str, Any]:
    """The live parts of the page of nodes."""
    _since, views, apart = _views(query)
    found = listing_of(query, NodesTable, views, NODE_SEARCH, **_options(views, user, tenancy.rights(user)))
    return {"apart": apart, **_parts(views), "nodes": found}


def _views(query: QueryDict) -> tuple[int, list[NodeView], int]:
    """The number of the last event, the nodes as of that event, and how many of demonstrations are left out."""
    whole = occupancy.now()
    views = figures.nodes(whole, with_demonstrations=query.get("demonstrations") == "yes")
    node_usage.add_usage(views)
    return whole.number, views, len(whole.nodes) - len(views)


def _parts(views: list[NodeView]) -> dict[str, Any]:
    """What stands above the table."""
    return {
        "notices": notices.everywhere(),
        "maps": heat_map.cluster_maps(views),
        "undrawn": max(0, len(views) - heat_map.MOST_CELLS),
        "steps": range(heat_map.STEPS + 1),
        "has_usage": any(view.usage for view in views),
    }


def _options(views: list[NodeView], user: User, rights: Rights) -> dict[str, Any]:
    """How the table is made: with the jobs of the nodes of its page, and without columns that have no values."""

    def with_jobs(rows: list[NodeView]) -> list[NodeView]:
        figures.name_jobs(rows, user, rights)
        return rows

    may_cordon = accounts.may(user, Permission.MANAGE_CLUSTERS)
    has = {
        "model": any(view.models for view in views),
        "cards": any(view.free_cards or view.models for view in views),
        "measured": any(view.usage for view in views),
        "actions": may_cordon,
    }
    return {"rows": with_jobs, "exclude": tuple(name for name, is_there in has.items() if not is_there)}


@require_safe
def show(request: HttpRequest, node_id: int) -> HttpResponse:
    """Show one node."""
    return render(request, "clusters/node.html", one_parts(person(request), node_id, current_tenant.rights(request)))


def one_parts(user: User, node_id: int, rights: Rights | None = None) -> dict[str, Any]:
    """The live parts of a node's page. `rights`: the person's rights, if already read. Raises NotFound."""
    whole, rights = occupancy.now(), rights or tenancy.rights(user)
    node = selectors.node(node_id)
    view = figures.node_view(whole, node, Resources.parse(node.allocatable))
    figures.name_jobs([view], user, rights)
    figures.name_cards([view], user, rights)
    node_usage.add_card_usage([view])
    return {
        "since": whole.number,
        "view": view,
        "node": node,
        "badge": state_badge(node),
        "may_cordon": accounts.may(user, Permission.MANAGE_CLUSTERS),
    }
