"""Endpoints of queues, their shares, and previews of changes."""

from collections.abc import Iterable
from typing import Any

from django.db.models import prefetch_related_objects
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayPages, ArrayQuery
from hekla.api.documents import validated
from hekla.api.parsers import BoundedJSONParser, ManifestParser, ManifestText
from hekla.api.problems import flattened
from hekla.api.queries import checked
from hekla.api.throttles import PerPersonThrottle, WhatIfThrottle
from hekla.api.v1.parameters import DryRunQuery, undone_if
from hekla.api.v1.queue_serializers import (
    ForecastSerializer,
    MadeQueueSerializer,
    QueueDetailSerializer,
    QueueSerializer,
    QueueStatusSerializer,
)
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import Scope
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs import selectors as jobs
from hekla.apps.queues import checks, selectors, services
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain import formats
from hekla.domain.errors import HeklaError, Invalid
from hekla.lib import clock
from hekla.scheduling import queue_check
from hekla.scheduling.card_model_usage import card_model_usage
from hekla.simulation import queue_descriptions, queue_shares
from hekla.simulation.queue_order import line


class QueueListView(ApiView):
    queries = {"get": ArrayQuery, "post": DryRunQuery}
    writes = Scope.MANAGE

    parser_classes: tuple[type[BaseParser], ...] = (BoundedJSONParser, ManifestParser)  # type: ignore[assignment]

    @extend_schema(responses=QueueSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The queues that your tenants can submit to."""
        user, pages = person(request), ArrayPages()
        found = pages.paginate_queryset(selectors.listed_visible_to(user), request)
        if accounts.may(user, Permission.MANAGE_QUEUES):
            prefetch_related_objects(found, "tenants")
        return pages.get_paginated_response(_serialized(found, user).data)

    @extend_schema(
        request={"application/json": QueueSerializer, "application/yaml": OpenApiTypes.STR},
        responses={200: MadeQueueSerializer, 201: MadeQueueSerializer},
    )
    def post(self, request: Request) -> Response:
        """Create a queue (platform admins and operators) from its fields, or from Volcano's Queue in YAML.

        200 for `dry_run`.
        """
        user = person(request)
        require(user, Permission.MANAGE_QUEUES)
        body: Any = request.data
        if not isinstance(body, ManifestText):
            with undone_if(self.query["dry_run"]) as status:
                return respond(_saved(_made(validated(QueueSerializer(data=body)), user)), status=status)
        loaded = formats.load_queue(body["text"])
        document = loaded.placed([cluster.name for cluster in clusters.all_clusters()])
        with undone_if(self.query["dry_run"]) as status:
            try:
                queue = _made(checked(QueueSerializer(data=document)), user)
            except ValidationError as error:
                raise loaded.findings.translate_paths(Invalid(flattened(error))) from error
            except HeklaError as error:
                raise loaded.findings.translate_paths(error) from error
            return respond(_saved(queue, loaded.warnings), status=status)


class QueueDetailView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(responses=QueueDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One queue, also as a manifest."""
        return respond(_serialized(selectors.get(name, person(request)), person(request)))

    @extend_schema(request=QueueDetailSerializer(partial=True), responses=MadeQueueSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change a queue, open, close or drain it (platform admins and operators)."""
        user = person(request)
        queue = selectors.get(name, user)
        require(user, Permission.MANAGE_QUEUES)
        values = validated(QueueDetailSerializer(queue, data=request.data, partial=True))
        state, tenants = values.pop("state", None), values.pop("tenants", None)
        allow, now = values.pop("allow_unknown_resources", False), clock.now()
        if values or tenants is not None:
            services.change(
                queue,
                values,
                tenants=tenants,
                allow_unknown_resources=allow,
                by=user,
                actor=actor_of(user),
                now=now,
            )
        if state is not None:
            services.set_state(queue, state, by=user, actor=actor_of(user), now=now)
        return respond(_saved(queue))


class QueueSharesView(ApiView):
    @extend_schema(responses=QueueStatusSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Allocated, deserved, borrowed and lent resources of a queue, and its pending jobs that you can see."""
        user = person(request)
        queue = selectors.get(name, user)
        here = queue_shares.present(queue, is_alone=True)
        found = line(here, queue, jobs.seeing(user, tenancy.rights(user)))
        facts: dict[str, Any] = {"name": queue.name, "state": queue.state, "waiting": found.waiting}
        facts |= {"inside": found.inside, "cards": card_model_usage(here.snapshot.state, here.policy, queue)}
        in_line = [{"uid": here.snapshot.jobs[str(pk)].uid, "name": here.snapshot.jobs[str(pk)].name, "place": place}
                   for pk, place in found.places.items()]  # fmt: skip
        return respond(QueueStatusSerializer({**facts, "in_line": in_line, "shares": here.shares.get(queue.name)}))


class QueuePreviewView(ApiView):
    throttle_classes = (PerPersonThrottle, WhatIfThrottle)

    @extend_schema(request=QueueDetailSerializer(partial=True), responses=ForecastSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Preview a change: the share of each queue, and the jobs that would lose pods. Nothing is saved."""
        user = person(request)
        queue = selectors.get(name, user)
        require(user, Permission.MANAGE_QUEUES)
        values = validated(QueueDetailSerializer(queue, data=request.data, partial=True))
        for field in values.keys() - {"tenants", "cluster", "name", "state", "allow_unknown_resources"}:
            setattr(queue, field, values[field])
        checks.require(queue, allow_unknown_resources=values.get("allow_unknown_resources", False))
        noted = {"warnings": queue_check.warnings(queue)}
        return respond(ForecastSerializer(queue_shares.forecast(queue), context=noted))


def _made(values: dict[str, Any], user: User) -> Queue:
    return services.create(
        cluster=values.pop("cluster"),
        name=values.pop("name"),
        tenants=values.pop("tenants", ()),
        allow_unknown_resources=values.pop("allow_unknown_resources", False),
        values=values,
        actor=actor_of(user),
        now=clock.now(),
    )


def _saved(queue: Queue, warnings: Iterable[str] = ()) -> MadeQueueSerializer:
    """The serializer of a queue just saved. `warnings`: those of its manifest."""
    over = queue_descriptions.over_commitments(queue_shares.over_commitments(queue))
    return MadeQueueSerializer(queue, context={"warnings": [*warnings, *over, *queue_check.warnings(queue)]})


def _serialized(queues: Any, user: User) -> QueueSerializer:  # noqa: ANN401  (one queue, or many)
    """The serializer of one queue or of many.

    Only people who can manage queues see `tenants` and `parent`: these may name tenants and queues hidden from others.
    """
    serializer = QueueDetailSerializer(queues) if isinstance(queues, Queue) else QueueSerializer(queues, many=True)
    if not accounts.may(user, Permission.MANAGE_QUEUES):
        child = serializer.child if hasattr(serializer, "child") else serializer
        child.fields.pop("tenants")
        child.fields.pop("parent")
    return serializer
