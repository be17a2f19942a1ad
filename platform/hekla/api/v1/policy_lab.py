"""Endpoints of the policy lab: experiments on the recorded workload of a cluster, and traces. For operators."""

from base64 import b64decode
from binascii import Error as NotBase64
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import validated
from hekla.api.parsers import FileInJSONParser
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.policy_lab import problems, selectors, services
from hekla.apps.policy_lab.models import MAX_TITLE, LabRun
from hekla.domain.errors import Invalid, Problem
from hekla.lib import clock
from hekla.simulation import policy_lab

_GZIP_IN_BASE64 = "H4sI"


class ExperimentRequestSerializer(serializers.Serializer[Any]):
    """An experiment to run: the workload of a period, and what changes."""

    cluster = serializers.CharField(max_length=40)
    title = serializers.CharField(max_length=MAX_TITLE, default="", allow_blank=True)
    starts_at = serializers.DateTimeField(help_text="begin of the period", required=False)
    ends_at = serializers.DateTimeField(help_text="end of the period", required=False)
    trace = serializers.UUIDField(
        help_text="the trace whose jobs run, instead of a period", required=False, allow_null=True, default=None
    )
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
    trace_name = serializers.CharField(help_text="the trace whose jobs run; empty: recorded jobs")
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
        cluster, uid, user = clusters.get(values.pop("cluster")), values.pop("trace"), person(request)
        if (uid is None) != ({"starts_at", "ends_at"} <= values.keys()):
            raise Invalid([Problem("trace", _("Send either a trace, or the begin and end of a period."))])
        trace = None if uid is None else selectors.trace(user, uid)
        period = {"starts_at": trace.starts_at, "ends_at": trace.ends_at} if trace else {}
        found = policy_lab.start(cluster, **{**values, **period}, user=user, now=clock.now(), trace=trace)
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


class TraceRequestSerializer(serializers.Serializer[Any]):
    """A file of another scheduler, to be stored as a workload."""

    name = serializers.CharField(max_length=MAX_TITLE)
    format = serializers.CharField(max_length=20, help_text="sacct, helios, philly or alibaba")
    content = serializers.CharField(
        trim_whitespace=False, help_text="the file as text, or packed with gzip and written in base64"
    )


class TraceSerializer(serializers.Serializer[Any]):
    """A trace without its file."""

    uid = serializers.UUIDField()
    name = serializers.CharField()
    format = serializers.CharField()
    size = serializers.IntegerField(help_text="bytes of the file")
    jobs = serializers.IntegerField()
    pods = serializers.IntegerField()
    starts_at = serializers.DateTimeField(help_text="the first submission")
    ends_at = serializers.DateTimeField(help_text="the last submission")
    queues = serializers.ListField(child=serializers.CharField())
    notes = serializers.DictField(child=serializers.IntegerField(), help_text="what was assumed, with how often")
    first_unreadable = serializers.IntegerField(help_text="the first line that could not be read; 0: none")
    created_at = serializers.DateTimeField()
    owner = serializers.CharField(source="owner.username", default=None)


class TracesView(ApiView):
    permission = Permission.MANAGE_CLUSTERS
    parser_classes = (FileInJSONParser,)
    queries = {"get": ArrayQuery}

    @extend_schema(responses=TraceSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Traces of other schedulers, the newest first (operators and platform admins)."""
        return array(request, selectors.traces(person(request)), TraceSerializer)

    @extend_schema(request=TraceRequestSerializer, responses={201: TraceSerializer})
    def post(self, request: Request) -> Response:
        """Store a file of another scheduler. Experiments can run its jobs."""
        values = validated(TraceRequestSerializer(data=request.data))
        found = policy_lab.upload_trace(
            name=values["name"],
            form=values["format"],
            content=_bytes_of(values["content"]),
            user=person(request),
            now=clock.now(),
        )
        return respond(TraceSerializer(found), status=201)


def _bytes_of(content: str) -> bytes:
    """The file: base64 of a gzip file begins with these characters, and no file in a known format does."""
    if content.startswith(_GZIP_IN_BASE64):
        try:
            return b64decode(content, validate=True)
        except (NotBase64, ValueError):
            pass
    return content.encode(errors="replace")


class TraceView(ApiView):
    @extend_schema(responses=TraceSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """A trace."""
        return respond(TraceSerializer(selectors.trace(person(request), uid)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID) -> Response:
        """Delete a trace: for its owner and for platform admins."""
        user = person(request)
        services.delete_trace(selectors.trace(user, uid), user=user, now=clock.now())
        return Response(status=204)
