"""Endpoints of clusters and their connection checks. Validation is the same as on the pages."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import validated
from hekla.api.v1.cluster_serializers import (
    ClusterAnswerSerializer,
    ClusterChangeSerializer,
    ClusterDetailSerializer,
    ClusterSerializer,
    NewClusterSerializer,
)
from hekla.api.v1.parameters import DryRunQuery
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import Scope
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import Cluster
from hekla.apps.clusters.services import Key
from hekla.backends.base import Health
from hekla.cluster_access import keys, validation
from hekla.cluster_access.health import as_facts, describe_trouble, is_healthy
from hekla.cluster_access.validation import ClusterDraft
from hekla.domain.errors import Invalid, Problem
from hekla.lib import clock

_SECRETS = ("kubeconfig", *keys.PARTS)


class ClusterListView(ApiView):
    queries = {"get": ArrayQuery, "post": DryRunQuery}
    writes = Scope.MANAGE

    @extend_schema(responses=ClusterSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The clusters and their health."""
        return array(request, selectors.all_clusters().select_related("health"), ClusterSerializer)

    @extend_schema(
        request=NewClusterSerializer,
        responses={200: ClusterAnswerSerializer, 201: ClusterDetailSerializer},
    )
    def post(self, request: Request) -> Response:
        """Add a cluster (operators and platform admins). A dry run returns the connection check only."""
        user = _operator(request)
        draft, anyway = _draft(validated(NewClusterSerializer(data=request.data)), None)
        if self.query["dry_run"]:
            return _tried(validation.probe(draft, always=True))
        return respond(ClusterDetailSerializer(_saved(draft, user, anyway=anyway)), 201)


class ClusterView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(responses=ClusterDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One cluster: its health and its connection (operators and platform admins)."""
        _operator(request)
        return respond(ClusterDetailSerializer(selectors.get(name)))

    @extend_schema(request=ClusterChangeSerializer, responses=ClusterDetailSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change a cluster or its credentials, or pause it (operators and platform admins)."""
        user = _operator(request)
        draft, anyway = _draft(validated(ClusterChangeSerializer(data=request.data)), selectors.get(name))
        return respond(ClusterDetailSerializer(_saved(draft, user, anyway=anyway)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a cluster that has no queues and ran no jobs (operators and platform admins)."""
        user = _operator(request)
        services.remove(selectors.get(name), actor=actor_of(user), now=clock.now())
        return Response(status=204)


class ClusterProbeView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(request=ClusterChangeSerializer, responses=ClusterAnswerSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Check the connection now, also with unsaved changes (operators and platform admins)."""
        _operator(request)
        started_at, cluster = clock.now(), selectors.get(name)
        draft, _anyway = _draft(validated(ClusterChangeSerializer(data=request.data)), cluster)
        found = validation.probe(draft, always=True)
        if found and draft.is_reached_as_before:
            services.observe_health(cluster, as_facts(found), started_at=started_at, now=clock.now())
        return _tried(found)


class ClusterKeyView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete the credentials. The cluster then uses its configuration (operators and platform admins)."""
        user = _operator(request)
        services.remove_key(selectors.get(name), actor=actor_of(user), now=clock.now())
        return Response(status=204)


class MetricsTokenSerializer(serializers.Serializer[Any]):
    """The token for the server of metrics that the configuration of a cluster names."""

    token = serializers.CharField(max_length=services.MAX_METRICS_TOKEN, write_only=True)


class ClusterMetricsTokenView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(request=MetricsTokenSerializer, responses={204: None})
    def put(self, request: Request, name: str) -> Response:
        """Store the token for the cluster's Prometheus. It is never shown (operators and platform admins)."""
        user = _operator(request)
        values = validated(MetricsTokenSerializer(data=request.data))
        services.set_metrics_token(selectors.get(name), values["token"], actor=actor_of(user), now=clock.now())
        return Response(status=204)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete that token (operators and platform admins)."""
        user = _operator(request)
        services.set_metrics_token(selectors.get(name), "", actor=actor_of(user), now=clock.now())
        return Response(status=204)


def _operator(request: Request) -> User:
    user = person(request)
    require(user, Permission.MANAGE_CLUSTERS)
    return user


def _draft(values: dict[str, Any], cluster: Cluster | None) -> tuple[ClusterDraft, bool]:
    """The draft of the new or changed cluster, and `anyway`: save it even if the check fails. Raises Invalid."""
    anyway, secrets = values.pop("anyway"), {name: values.pop(name) for name in _SECRETS if name in values}
    row = {"config": cluster.config if cluster else {}, **values}
    kind = cluster.kind if cluster else row["kind"]
    if secrets and kind != Cluster.Kind.KUBERNETES:
        raise Invalid([Problem(min(secrets), _("Clusters of this kind need no credentials."))])
    key = _key(secrets) if secrets else None
    has_key = key or (cluster and selectors.key(cluster))
    if has_key and row["config"].get("kubeconfig"):
        raise Invalid(
            [Problem("config", _("The configuration names a kubeconfig. Remove it, or send no credentials."))]
        )
    field = "config" if key is None else "kubeconfig" if "kubeconfig" in secrets else "token"
    return ClusterDraft(row, cluster, key, field=field), anyway


def _key(secrets: dict[str, str]) -> Key:
    if "kubeconfig" in secrets:
        return keys.as_stored(keys.from_kubeconfig(secrets["kubeconfig"], field="kubeconfig"))
    return keys.as_stored(keys.from_token(*(secrets.get(part, "") for part in keys.PARTS)))


def _saved(draft: ClusterDraft, user: User, *, anyway: bool) -> Cluster:
    found = validation.probe(draft)
    if not anyway:
        validation.require_healthy(draft, found)
    return validation.save(draft, found, by=user, now=clock.now())


def _tried(found: Health | None) -> Response:
    """A response with the result of a connection check. Kinds without a check (None) get an empty, healthy result."""
    facts: dict[str, Any] = {**as_facts(found or Health())}
    facts |= {"is_whole": is_healthy(found or Health()), "sentence": describe_trouble(facts["problem"])}
    return respond(ClusterAnswerSerializer(facts))
