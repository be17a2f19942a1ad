"""The endpoint that sets labels of a node for the scheduler."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import Node
from hekla.lib import clock


class NodeLabelsSerializer(serializers.Serializer[Any]):
    """The labels of a node."""

    labels = serializers.DictField(child=serializers.CharField(), help_text="all, as the scheduler reads them")
    set_labels = serializers.DictField(child=serializers.CharField(), help_text="those that were set here")


class NodeLabelChangeSerializer(serializers.Serializer[Any]):
    """Labels to set, and null for those to remove."""

    set_labels = serializers.DictField(child=serializers.CharField(allow_null=True, allow_blank=True, max_length=63))


class NodeLabelsView(ApiView):
    permission = Permission.MANAGE_CLUSTERS

    @extend_schema(responses=NodeLabelsSerializer)
    def get(self, request: Request, cluster: str, node: str) -> Response:
        """The labels of the node, and which of them were set here (operators only)."""
        require(person(request), Permission.MANAGE_CLUSTERS)
        return respond(NodeLabelsSerializer(_document(selectors.node_named(cluster, node))))

    @extend_schema(request=NodeLabelChangeSerializer, responses=NodeLabelsSerializer)
    def patch(self, request: Request, cluster: str, node: str) -> Response:
        """Set labels for Hekla's scheduler, or remove those that were set here. The cluster does not get them."""
        require(person(request), Permission.MANAGE_CLUSTERS)
        values = validated(NodeLabelChangeSerializer(data=request.data))
        row = selectors.node_named(cluster, node)
        services.label_node(row, values["set_labels"], actor=actor_of(person(request)), now=clock.now())
        return respond(NodeLabelsSerializer(_document(row)))


def _document(node: Node) -> dict[str, Any]:
    return {"labels": {name: str(value) for name, value in node.labels.items()}, "set_labels": node.set_labels}
