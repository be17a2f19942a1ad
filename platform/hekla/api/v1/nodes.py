"""Endpoints of nodes and environments."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.v1.serializers import EnvironmentSerializer, NodeSerializer
from hekla.api.views import ApiView
from hekla.apps.clusters import selectors as clusters
from hekla.domain.resources import Resources
from hekla.lib import clock
from hekla.scheduling import occupancy


class NodesView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=NodeSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The nodes, with allocatable and allocated resources, and what is used of them."""
        return array(request, _with_use(), NodeSerializer)


class EnvironmentsView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=EnvironmentSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The environments that tasks can use."""
        return array(request, clusters.environments(), EnvironmentSerializer)


def _with_use() -> list[dict[str, Any]]:
    whole, nothing = occupancy.now(), Resources()
    nodes = [node for node, _allocatable in whole.nodes]
    cards, usage = clusters.node_cards(nodes), clusters.fresh_usage(nodes, now=clock.now())
    facts = ["name", "cluster", "is_ready", "is_cordoned", "message", "allocatable", "labels", "taints"]
    facts += ["hypernodes", "numa", "zone", "region"]
    return [
        {name: getattr(node, name) for name in facts}
        | {
            "used": whole.machines.get((node.cluster_id, node.name), nothing).quantities(),
            "cards": cards.get(node.pk, []),
            "usage": usage.get(node.pk),
        }
        for node in nodes
    ]
