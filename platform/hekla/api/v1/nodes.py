"""Endpoints of nodes and environments."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.serializers import EnvironmentSerializer, NodeSerializer
from hekla.api.views import ApiView, respond
from hekla.apps.clusters import selectors as clusters
from hekla.domain.resources import Resources
from hekla.scheduling import occupancy


class NodesView(ApiView):
    @extend_schema(responses=NodeSerializer(many=True))
    def get(self, request: Request) -> Response:  # noqa: ARG002
        """The nodes, with allocatable and allocated resources."""
        return respond(NodeSerializer(_with_use(), many=True))


class EnvironmentsView(ApiView):
    @extend_schema(responses=EnvironmentSerializer(many=True))
    def get(self, request: Request) -> Response:  # noqa: ARG002
        """The environments that tasks can use."""
        return respond(EnvironmentSerializer(clusters.environments(), many=True))


def _with_use() -> list[dict[str, Any]]:
    whole, nothing = occupancy.now(), Resources()
    facts = ("name", "cluster", "is_ready", "is_cordoned", "message", "allocatable", "labels")
    return [
        {name: getattr(node, name) for name in facts}
        | {"used": whole.machines.get((node.cluster_id, node.name), nothing).quantities()}
        for node, _allocatable in whole.nodes
    ]
