"""Endpoints of the policy lab: experiments on the recorded workload of a cluster. For operators."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import validated
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.policy_lab import problems, selectors, services
from hekla.apps.policy_lab.models import MAX_TITLE, LabRun
from hekla.lib import clock
from hekla.simulation import policy_lab


class ExperimentRequestSerializer(serializers.Serializer[Any]):
    """An experiment to run: the workload of a period, and what changes."""

    cluster = serializers.CharField(max_length=40)
    title = serializers.CharField(max_length=MAX_TITLE, default="", allow_blank=True)
    starts_at = serializers.DateTimeField(help_text="begin of the period")
    ends_at = serializers.DateTimeField(help_text="end of the period")
    change = serializers.JSONField(
        default=dict,
        help_text="policy (a text), queues (weight, capability, deserved, guarantee by queue), nodes (a list of like "
        "and count), remove_nodes (names); empty: nothing changes",
    )


class ExperimentSerializer(serializers.Serializer[Any]):
    """An experiment without its result."""

    uid = serializers.UUIDField()
    title = serializers.CharField()
    cluster = serializers.CharField(source="cluster.name")
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    change = serializers.JSONField()
    state = serializers.ChoiceField(LabRun.State.values)
    progress = serializers.FloatField(help_text="from 0 to 1")
    problem = serializers.SerializerMethodField(help_text="why it failed; else empty")
    problem_facts = serializers.JSONField(help_text="the same as code and values; else empty")
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_by.username", default=None)
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_problem(self, row: LabRun) -> str:
        """In the reader's language."""
        return problems.sentence(row)


class ExperimentResultSerializer(ExperimentSerializer):
    """An experiment with its result."""

    result = serializers.JSONField(
        help_text="columns: the figures of what was recorded, of the unchanged and of the changed run; trust: how the "
        "unchanged run differs from what happened; notes: what was assumed; null: not finished",
    )


class ExperimentsView(ApiView):
    permission = Permission.MANAGE_CLUSTERS
    queries = {"get": ArrayQuery}

    @extend_schema(responses=ExperimentSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Experiments of the policy lab, the newest first (operators and platform admins)."""
        return array(request, selectors.runs(person(request)), ExperimentSerializer)

    @extend_schema(request=ExperimentRequestSerializer, responses={201: ExperimentSerializer})
    def post(self, request: Request) -> Response:
        """Run an experiment. It waits until those before it are over; follow its state."""
        values = validated(ExperimentRequestSerializer(data=request.data))
        cluster = clusters.get(values.pop("cluster"))
        found = policy_lab.start(cluster, **values, user=person(request), now=clock.now())
        return respond(ExperimentSerializer(found), status=201)


class ExperimentView(ApiView):
    @extend_schema(responses=ExperimentResultSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """An experiment with its result."""
        return respond(ExperimentResultSerializer(selectors.get(person(request), uid)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID) -> Response:
        """Delete an experiment that is over."""
        services.delete(selectors.get(person(request), uid), user=person(request), now=clock.now())
        return Response(status=204)


class ExperimentCancelView(ApiView):
    @extend_schema(request=None, responses=ExperimentSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Cancel an experiment that waits or runs."""
        found = selectors.get(person(request), uid)
        services.cancel(found, user=person(request), now=clock.now())
        return respond(ExperimentSerializer(found))
