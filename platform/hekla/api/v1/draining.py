"""Endpoints that preview the drain of a node, drain it, and end that."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.throttles import PerPersonThrottle, WhatIfThrottle
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.clusters import selectors
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import MAX_DRAIN_REASON
from hekla.apps.jobs import services
from hekla.lib import clock
from hekla.simulation import drain_descriptions
from hekla.simulation.draining import DrainedJob, DrainFate, DrainPreview, preview_drain


class DrainedJobSerializer(serializers.Serializer[Any]):
    """A job with pods on the node."""

    uid = serializers.UUIDField()
    name = serializers.CharField()
    owner = serializers.CharField()
    tenant = serializers.CharField()
    is_session = serializers.BooleanField(help_text="a person works in it")
    pods = serializers.IntegerField(help_text="its pods on the node")
    stopped = serializers.IntegerField(help_text="how many of its pods stop, on all nodes")
    fate = serializers.ChoiceField([one.value for one in DrainFate])
    ends_as = serializers.CharField(help_text="phase of a job that ends; else empty")
    restarts_left = serializers.IntegerField(allow_null=True, help_text="null if it does not restart by a policy")
    lost_seconds = serializers.FloatField(help_text="longest run time of a pod that stops")
    lost_gpu_seconds = serializers.FloatField(help_text="run time times GPUs of all pods that stop")
    nodes = serializers.DictField(child=serializers.IntegerField(), help_text="where pods start at once")
    earliest_at = serializers.DateTimeField(allow_null=True, help_text="null: at once, or not within the horizon")
    latest_at = serializers.DateTimeField(allow_null=True)
    fits = serializers.BooleanField(help_text="false: its pods fit on no other node")
    text = serializers.ListField(child=serializers.CharField(), help_text="all of this as sentences")


class StrandedJobSerializer(serializers.Serializer[Any]):
    """A waiting job that fits only with the node."""

    uid = serializers.UUIDField()
    name = serializers.CharField()


class DrainPreviewSerializer(serializers.Serializer[Any]):
    """What happens if the node is drained now."""

    at = serializers.DateTimeField()
    pods = serializers.IntegerField(help_text="pods that are evicted")
    jobs = DrainedJobSerializer(many=True)
    stranded = StrandedJobSerializer(many=True)
    unchecked = serializers.IntegerField(help_text="waiting jobs that there was no time to check")
    token = serializers.CharField(help_text="send it with the drain, so that it evicts exactly these pods")


class DrainRequestSerializer(serializers.Serializer[Any]):
    """Why a node is drained."""

    reason = serializers.CharField(max_length=MAX_DRAIN_REASON, help_text="the owners of the jobs see it")
    token = serializers.CharField(
        required=False,
        max_length=40_000,
        help_text="of a preview: if other pods are there now, nothing is done; 409 says which ones",
    )


class DrainedPodsSerializer(serializers.Serializer[Any]):
    """What a drain evicts."""

    pods = serializers.IntegerField()
    jobs = serializers.IntegerField()


class NodeDrainView(ApiView):
    permission = Permission.MANAGE_CLUSTERS
    throttle_classes = (PerPersonThrottle, WhatIfThrottle)

    @extend_schema(responses=DrainPreviewSerializer)
    def get(self, request: Request, cluster: str, node: str) -> Response:
        """Preview a drain: which jobs lose what, and where and when they start again (operators only)."""
        require(person(request), Permission.MANAGE_CLUSTERS)
        found = preview_drain(selectors.node_named(cluster, node), user=person(request))
        return respond(DrainPreviewSerializer(_document(found)))

    @extend_schema(request=DrainRequestSerializer, responses=DrainedPodsSerializer)
    def post(self, request: Request, cluster: str, node: str) -> Response:
        """Cordon the node and evict its pods."""
        require(person(request), Permission.MANAGE_CLUSTERS)
        values = validated(DrainRequestSerializer(data=request.data))
        row = selectors.node_named(cluster, node)
        return respond(DrainedPodsSerializer(services.drain(row, **values, user=person(request), now=clock.now())))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, cluster: str, node: str) -> Response:
        """Uncordon the node, and end its drain. Evicted pods do not come back by themselves."""
        require(person(request), Permission.MANAGE_CLUSTERS)
        row = selectors.node_named(cluster, node)
        clusters.cordon(row, cordoned=False, actor=actor_of(person(request)), now=clock.now())
        return Response(status=204)


def _document(found: DrainPreview) -> dict[str, Any]:
    return {
        "at": found.at,
        "pods": found.pods,
        "jobs": [_drained(one, found) for one in found.jobs],
        "stranded": [{"uid": job.uid, "name": job.name} for job in found.stranded],
        "unchecked": found.unchecked,
        "token": found.token,
    }


def _drained(one: DrainedJob, preview: DrainPreview) -> dict[str, Any]:
    words = drain_descriptions
    same = ("pods", "stopped", "ends_as", "restarts_left", "lost_seconds", "lost_gpu_seconds", "nodes", "fits")
    return {
        **{name: getattr(one, name) for name in (*same, "is_session")},
        "uid": one.job.uid,
        "name": one.job.name,
        "owner": one.job.owner.username,
        "tenant": one.job.tenant.slug,
        "fate": one.fate.value,
        "earliest_at": one.starts.earliest if one.starts else None,
        "latest_at": one.starts.latest if one.starts else None,
        "text": list(filter(None, (words.fate(one), words.lost(one), words.when(one, preview.at)))),
    }
