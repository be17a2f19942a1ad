"""Where jobs run: clusters, their nodes, queues, environments."""

from collections import defaultdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.serializers import ClusterSerializer, EnvironmentSerializer, NodeSerializer, QueueSerializer
from hekla.api.views import View, checked, person, told
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.facts import spec_of
from hekla.apps.queues import selectors, services
from hekla.apps.queues.models import Queue
from hekla.domain.resources import Resources
from hekla.lib import clock


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


class Queues(View):
    @extend_schema(responses=QueueSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The queues that one of your tenants may submit to."""
        return told(_serialized(selectors.visible_to(person(request)).prefetch_related("tenants"), person(request)))

    @extend_schema(request=QueueSerializer, responses={201: QueueSerializer})
    def post(self, request: Request) -> Response:
        """Make a queue (platform admins and operators)."""
        user = person(request)
        require(user, Permission.MANAGE_QUEUES)
        values = checked(QueueSerializer(data=request.data))
        queue = services.create(
            cluster=values.pop("cluster"),
            name=values.pop("name"),
            tenants=values.pop("tenants", ()),
            values=values,
            actor=actor_of(user),
            now=clock.now(),
        )
        return told(QueueSerializer(queue), status=201)


class OneQueue(View):
    @extend_schema(responses=QueueSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One queue."""
        return told(_serialized(selectors.get(name, person(request)), person(request)))

    @extend_schema(request=QueueSerializer(partial=True), responses=QueueSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change a queue, open it or close it (platform admins and operators)."""
        user = person(request)
        queue = selectors.get(name, user)
        require(user, Permission.MANAGE_QUEUES)
        values = checked(QueueSerializer(queue, data=request.data, partial=True))
        is_open, tenants = values.pop("is_open", queue.is_open), values.pop("tenants", None)
        if values or tenants is not None:
            services.change(queue, values, tenants=tenants, by=user, actor=actor_of(user), now=clock.now())
        services.set_open(queue, is_open=is_open, by=user, actor=actor_of(user), now=clock.now())
        return told(QueueSerializer(queue))


def _serialized(queues: Any, user: User) -> QueueSerializer:  # noqa: ANN401  (one queue, or many)
    """Which tenants may use a queue, and what it is a part of, is told to those who manage queues.

    To others, other tenants and their queues do not exist.
    """
    serializer = QueueSerializer(queues, many=not isinstance(queues, Queue))
    if not accounts.may(user, Permission.MANAGE_QUEUES):
        shown = serializer.child if hasattr(serializer, "child") else serializer
        shown.fields.pop("tenants")
        shown.fields.pop("parent")
    return serializer


def _with_use(nodes: list[Node]) -> list[dict[str, Any]]:
    used: defaultdict[tuple[int, str], Resources] = defaultdict(Resources)
    for pod in jobs.usage_by_node(sorted({node.cluster_id for node in nodes})):
        used[pod.job.cluster_id, pod.node] += spec_of(pod.job).task(pod.task).request
    facts = ("name", "cluster", "is_ready", "is_cordoned", "message", "allocatable", "labels")
    return [
        {**{name: getattr(node, name) for name in facts}, "used": used[node.cluster_id, node.name].quantities()}
        for node in nodes
    ]
