"""A heat map of nodes: how much of their GPUs pods held in the last hours, and each card now with its holder."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.measures.node_selectors import NodeHour, node_hours
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.card_resources import card_counts
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.frame.selects import options
from hekla.pages.operations import queries
from hekla.pages.operations.tabs import tabs
from hekla.pages.queues import figures, node_usage
from hekla.pages.queues.figures import NodeView
from hekla.scheduling import occupancy

_MOST_NODES = 100
_LEVELS = 5


@dataclass(frozen=True, slots=True)
class HeatCell:
    """An hour of a node. `level`: from 1 (hardly held) to 5 (fully held); 0: no GPUs then, or none held."""

    percent: int
    useful: int
    level: int
    is_measured: bool


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A node with its hours."""

    view: NodeView
    held: float
    total: float
    cells: Sequence[HeatCell] = field(default=())


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the heat map of one cluster, or of all that are not simulated."""
    context = node_parts(person(request), request.GET, clock.now())
    name = queries.name_of(request.GET, "cluster")
    clusters_by_name = ((one.name, one.name) for one in clusters.all_clusters())
    context |= {"tabs": tabs("operations:nodes"), "clusters": options(clusters_by_name, {name})}
    context["live"] = queries.live("nodes", queries.encoded({"cluster": name}))
    return render(request, "operations/nodes.html", context)


def node_parts(user: User, parameters: QueryDict, now: datetime) -> dict[str, Any]:
    """The live parts of the page. Raises NotFound."""
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        raise NotFound(_("Unknown page."))
    name, every = queries.name_of(parameters, "cluster"), clusters.all_clusters()
    known = {clusters.get(name).pk} if name else {one.pk for one in every if not one.is_simulated}
    views = [view for view in figures.nodes(occupancy.now()) if view.node.cluster_id in known]
    views = sorted((view for view in views if card_counts(view.allocatable)), key=lambda view: view.node.name)
    first = views[:_MOST_NODES]
    figures.name_cards(first, user, tenancy.rights(user))
    node_usage.add_card_usage(first)
    times, hours = node_hours([(view.node.cluster_id, view.node.name) for view in first], now=now)
    return {
        "times": times,
        "rows": [_row(view, hours.get((view.node.cluster_id, view.node.name), ())) for view in first],
        "has_cards": any(view.cards for view in first),
        "more": len(views) - len(first),
        "is_simulated": any(one.is_simulated for one in every if one.pk in known),
    }


def _row(view: NodeView, hours: Sequence[NodeHour]) -> HeatRow:
    held = sum(card_counts(view.used).values())
    return HeatRow(view, held, sum(card_counts(view.allocatable).values()), [_cell(one) for one in hours])


def _cell(hour: NodeHour) -> HeatCell:
    if not hour.capacity:
        return HeatCell(0, 0, 0, is_measured=False)
    percent, useful = (round(100 * amount / hour.capacity) for amount in (hour.held, hour.useful))
    level = min(_LEVELS, 1 + percent * _LEVELS // 100) if percent else 0
    return HeatCell(percent, useful, level, is_measured=True)
