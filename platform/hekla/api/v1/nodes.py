"""Endpoints of nodes and environments."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.utils.timezone import get_current_timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayPages, ArrayQuery, array
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
    nothing, times = Resources(), _Times()
    for node in nodes:
        measured, cluster = usage.get(node.id), node.cluster
        yield {
            "name": node.name,
            "cluster": cluster.name,
            "is_simulated": cluster.is_simulated,
            "is_ready": node.is_ready,
            "is_cordoned": node.is_cordoned,
            "message": node.message,
            "allocatable": {name: str(amount) for name, amount in node.allocatable.items()},
            "used": whole.machines.get((cluster.id, node.name), nothing).quantities(),
            "labels": {name: str(value) for name, value in node.labels.items()},
            "zone": node.zone,
            "region": node.region,
            "taints": node.taints,
            "cards": cards.get(node.id, []),
            "hypernodes": node.hypernodes,
            "numa": node.numa,
            "usage": measured and {"measured_at": times[measured.at], **_usage(measured)},
        }


class _Times(dict[datetime, str]):
    """Instants as REST shows them. Most nodes are measured at the same ones."""

    def __init__(self) -> None:
        super().__init__()
        self._field = serializers.DateTimeField(default_timezone=get_current_timezone())

    def __missing__(self, at: datetime) -> str:
        text = self[at] = str(self._field.to_representation(at))
        return text


def _usage(measured: NodeMeasurement) -> dict[str, Any]:
    return {
        "cpu": measured.cpu,
        "memory": measured.memory,
        "cards": [{**card, "busy": int(card["busy"])} for card in measured.cards],
    }
