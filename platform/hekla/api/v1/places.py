"""Where jobs run: clusters, their nodes, environments."""

from collections import defaultdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.serializers import ClusterSerializer, EnvironmentSerializer, NodeSerializer
from hekla.api.views import View, told
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.facts import spec_of
from hekla.domain.resources import Resources


class Clusters(View):
    @extend_schema(responses=ClusterSerializer(many=True))
    def get(self, request: Request) -> Response:  # noqa: ARG002
        """The places where pods run."""
        return told(ClusterSerializer(clusters.all_clusters(), many=True))


class Nodes(View):
    @extend_schema(responses=NodeSerializer(many=True))
    def get(self, request: Request) -> Response:  # noqa: ARG002
        """The machines, what each can give, and what of it is held."""
        return told(NodeSerializer(_with_use(list(clusters.nodes())), many=True))


class Environments(View):
    @extend_schema(responses=EnvironmentSerializer(many=True))
    def get(self, request: Request) -> Response:  # noqa: ARG002
        """The named sets of packages that a task may ask for."""
        return told(EnvironmentSerializer(clusters.environments(), many=True))


def _with_use(nodes: list[Node]) -> list[dict[str, Any]]:
    used: defaultdict[tuple[int, str], Resources] = defaultdict(Resources)
    for pod in jobs.usage_by_node(sorted({node.cluster_id for node in nodes})):
        used[pod.job.cluster_id, pod.node] += spec_of(pod.job).task(pod.task).request
    facts = ("name", "cluster", "is_ready", "is_cordoned", "message", "allocatable", "labels")
    return [
        {**{name: getattr(node, name) for name in facts}, "used": used[node.cluster_id, node.name].quantities()}
        for node in nodes
    ]
