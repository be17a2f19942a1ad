"""Endpoint of the open sessions of all jobs: the figures of the page of operations."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.views import ApiView, person
from hekla.apps.reports import session_ledger
from hekla.apps.reports.session_ledger import OpenSession, SessionGroupBy, SessionsQuery, SessionSums
from hekla.domain.tools import Tool
from hekla.lib import clock

_MOST_ROWS = 200


class SessionUseQuerySerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField(
        required=False, max_length=200, help_text="name; default: all that are not simulated"
    )
    tenant = serializers.CharField(required=False, max_length=200, help_text="short name")
    person = serializers.CharField(required=False, max_length=150, help_text="name of the owner")
    tool = serializers.ChoiceField([tool.value for tool in Tool], required=False)
    by = serializers.ChoiceField(
        [one.value for one in SessionGroupBy], default=SessionGroupBy.TOOL.value, help_text="parts"
    )


class SessionSumsSerializer(serializers.Serializer[Any]):
    """`idle`: not used for half an hour. `gpus`: of their pods; `unused_gpus`: as far as use is measured."""

    sessions = serializers.IntegerField()
    idle = serializers.IntegerField()
    gpus = serializers.FloatField()
    unused_gpus = serializers.FloatField()


class SessionPartSerializer(SessionSumsSerializer):
    name = serializers.CharField()
    key = serializers.CharField(help_text="name for the filter")


class OpenSessionSerializer(serializers.Serializer[Any]):
    uid = serializers.UUIDField()
    tool = serializers.CharField()
    owner = serializers.CharField()
    tenant = serializers.CharField()
    cluster = serializers.CharField()
    job = serializers.UUIDField()
    pod = serializers.CharField()
    opened_at = serializers.DateTimeField()
    used_at = serializers.DateTimeField(help_text="when a person or a kernel used it last")
    is_idle = serializers.BooleanField()
    gpus = serializers.FloatField()
    gpus_unused_since = serializers.DateTimeField(allow_null=True, help_text="null if they are used, or not measured")


class SessionUseSerializer(serializers.Serializer[Any]):
    """`sessions`: at most 200, the longest unused first. `total` and `parts` count all."""

    at = serializers.DateTimeField()
    is_simulated = serializers.BooleanField()
    total = SessionSumsSerializer()
    parts = SessionPartSerializer(many=True)
    sessions = OpenSessionSerializer(many=True)


class SessionUseView(ApiView):
    queries = {"get": SessionUseQuerySerializer}

    @extend_schema(responses=SessionUseSerializer)
    def get(self, request: Request) -> Response:
        """The open sessions of the jobs that you can see: owners, when each was used last, and GPUs."""
        query = SessionsQuery(**{**self.query, "by": SessionGroupBy(self.query["by"])})
        found = session_ledger.sessions(person(request), query, now=clock.now())
        return Response(
            {
                "at": found.at,
                "is_simulated": found.is_simulated,
                "total": _sums(found.total),
                "parts": [{"name": part.name or part.key, "key": part.key, **_sums(part.sums)} for part in found.parts],
                "sessions": [{**_session(one), "is_idle": one.is_idle(found.at)} for one in found.rows[:_MOST_ROWS]],
            }
        )


def _sums(sums: SessionSums) -> dict[str, float]:
    return {"sessions": sums.sessions, "idle": sums.idle, "gpus": sums.gpus, "unused_gpus": sums.unused}


def _session(row: OpenSession) -> dict[str, Any]:
    one, job = row.session, row.session.pod.job
    return {
        "uid": one.uid,
        "tool": one.tool,
        "owner": one.owner.username,
        "tenant": job.tenant.slug,
        "cluster": job.cluster.name,
        "job": job.uid,
        "pod": str(one.pod),
        "opened_at": one.created_at,
        "used_at": row.used_at,
        "gpus": row.gpus.gpus,
        "gpus_unused_since": row.gpus.unused_since,
    }
