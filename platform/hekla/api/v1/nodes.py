"""Endpoints of nodes and environments."""

from collections.abc import Iterator, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayPages, ArrayQuery, array
from hekla.api.times import RestTimes
from hekla.api.v1.serializers import EnvironmentSerializer, NodeSerializer
from hekla.api.views import ApiView
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.clusters.selectors import NodeMeasurement
from hekla.domain.resources import Resources
from hekla.lib import clock
from hekla.scheduling import occupancy
from hekla.scheduling.occupancy import Occupancy


class NodesView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=NodeSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The nodes, with allocatable and allocated resources, and what is used of them."""
        whole, pages = occupancy.now(), ArrayPages()
        nodes = pages.paginate_queryset([node for node, _allocatable in whole.nodes], request)
        return pages.get_paginated_response(list(_documents(nodes, whole)))


class EnvironmentsView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=EnvironmentSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The environments that tasks can use."""
        return array(request, clusters.environments(), EnvironmentSerializer)


def _documents(nodes: Sequence[Node], whole: Occupancy) -> Iterator[dict[str, Any]]:
    """The nodes as `NodeSerializer` describes them. It is not run: with 1,000 nodes it takes most of the time."""
    cards, usage = clusters.node_cards(nodes), clusters.fresh_usage(nodes, now=clock.now())
    nothing, times, amounts = Resources(), RestTimes(), dict[int, dict[str, str]]()
    for node in nodes:
        pk, measured = node.id, usage.get(node.id)
        used = whole.machines.get((node.cluster_id, node.name), nothing)
        alike = id(used.amounts)  # equal amounts are the same mapping (`Resources`)
        yield {
            **_reported(node),
            "used": amounts.get(alike) or amounts.setdefault(alike, used.quantities()),
            "cards": cards.get(pk, _NO_CARDS),
            "usage": measured and {"measured_at": times[measured.at], **_usage(measured)},
        }


def _reported(node: Node) -> dict[str, Any]:
    """What is known of a node without its usage. The rows of nodes are kept until they change, and so are these."""
    found = _known.get(node.id)
    if found is None or found[0] is not node:
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        found = _known[node.id] = (node, _described(node))
    return found[1]


_known: dict[int, tuple[Node, dict[str, Any]]] = {}
_MOST_KNOWN = 20_000
_NO_CARDS: list[dict[str, Any]] = []


def _described(node: Node) -> dict[str, Any]:
    cluster = node.cluster
    return {
        "name": node.name,
        "cluster": cluster.name,
        "is_simulated": cluster.is_simulated,
        "is_ready": node.is_ready,
        "is_cordoned": node.is_cordoned,
        "message": node.message,
        "allocatable": {name: str(amount) for name, amount in node.allocatable.items()},
        "used": {},
        "labels": {name: str(value) for name, value in node.labels.items()},
        "zone": node.zone,
        "region": node.region,
        "taints": node.taints,
        "cards": [],
        "hypernodes": node.hypernodes,
        "numa": node.numa,
    }


def _usage(measured: NodeMeasurement) -> dict[str, Any]:
    cards = measured.cards
    if not all(type(card["busy"]) is int for card in cards):
        cards = [{**card, "busy": int(card["busy"])} for card in cards]
    return {"cpu": measured.cpu, "memory": measured.memory, "cards": cards}
