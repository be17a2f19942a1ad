"""Queues: make, list, look, change."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.parsers import BoundedJSON, Manifest, ManifestText
from hekla.api.problems import flattened
from hekla.api.v1.queue_serializers import MadeQueueSerializer, QueueDetailSerializer, QueueSerializer
from hekla.api.views import View, checked, person, told
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.clusters import selectors as clusters
from hekla.apps.queues import selectors, services
from hekla.apps.queues.models import Queue
from hekla.domain import formats
from hekla.domain.errors import HeklaError, Invalid
from hekla.lib import clock


class Queues(View):
    parser_classes: tuple[type[BaseParser], ...] = (BoundedJSON, Manifest)  # type: ignore[assignment]

    @extend_schema(responses=QueueSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The queues that one of your tenants may submit to."""
        return told(_serialized(selectors.visible_to(person(request)).prefetch_related("tenants"), person(request)))

    @extend_schema(
        request={"application/json": QueueSerializer, "application/yaml": OpenApiTypes.STR},
        responses={201: MadeQueueSerializer},
    )
    def post(self, request: Request) -> Response:
        """Make a queue (platform admins and operators): from its fields, or from a Queue of Volcano in YAML."""
        user = person(request)
        require(user, Permission.MANAGE_QUEUES)
        body: Any = request.data
        if not isinstance(body, ManifestText):
            return told(MadeQueueSerializer(_made(body, user)), status=201)
        loaded = formats.load_queue(body["text"])
        document = loaded.placed([cluster.name for cluster in clusters.all_clusters()])
        try:
            queue = _made(document, user)
        except ValidationError as error:
            raise loaded.findings.told(Invalid(flattened(error))) from error
        except HeklaError as error:
            raise loaded.findings.told(error) from error
        return told(MadeQueueSerializer(queue, context={"warnings": loaded.warnings}), status=201)


class OneQueue(View):
    @extend_schema(responses=QueueDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One queue, also as a manifest."""
        return told(_serialized(selectors.get(name, person(request)), person(request)))

    @extend_schema(request=QueueDetailSerializer(partial=True), responses=QueueDetailSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change a queue, open it or close it (platform admins and operators)."""
        user = person(request)
        queue = selectors.get(name, user)
        require(user, Permission.MANAGE_QUEUES)
        values = checked(QueueDetailSerializer(queue, data=request.data, partial=True))
        is_open, tenants = values.pop("is_open", queue.is_open), values.pop("tenants", None)
        if values or tenants is not None:
            services.change(queue, values, tenants=tenants, by=user, actor=actor_of(user), now=clock.now())
        services.set_open(queue, is_open=is_open, by=user, actor=actor_of(user), now=clock.now())
        return told(QueueDetailSerializer(queue))


def _made(document: dict[str, Any], user: User) -> Queue:
    values = checked(QueueSerializer(data=document))
    return services.create(
        cluster=values.pop("cluster"),
        name=values.pop("name"),
        tenants=values.pop("tenants", ()),
        values=values,
        actor=actor_of(user),
        now=clock.now(),
    )


def _serialized(queues: Any, user: User) -> QueueSerializer:  # noqa: ANN401  (one queue, or many)
    """Which tenants may use a queue, and what it is a part of, is told to those who manage queues.

    To others, other tenants and their queues do not exist.
    """
    serializer = QueueDetailSerializer(queues) if isinstance(queues, Queue) else QueueSerializer(queues, many=True)
    if not accounts.may(user, Permission.MANAGE_QUEUES):
        shown = serializer.child if hasattr(serializer, "child") else serializer
        shown.fields.pop("tenants")
        shown.fields.pop("parent")
    return serializer
