"""Endpoint of the audit log: actions of people, from the event log."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.views import ApiView, person, respond
from hekla.apps.tenancy import audit

_MOST = 200
_PARAMETERS = [
    OpenApiParameter("person", str, description="exact user name, also of the impersonating admin"),
    OpenApiParameter("kind", str, description="kind of event, for example TokenCreated"),
    OpenApiParameter("tenant", str, description="short name of the tenant"),
    OpenApiParameter("before", int, description="only smaller numbers: the last one of the previous page"),
    OpenApiParameter("limit", int, description=f"at most {_MOST}"),
]


class AuditEntrySerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(source="event.pk")
    at = serializers.DateTimeField(source="event.at")
    person = serializers.CharField(source="event.actor_name")
    impersonated_by = serializers.CharField(source="event.impersonator_name", help_text="admin; usually empty")
    kind = serializers.CharField(source="event.kind")
    subject = serializers.CharField(source="event.subject")
    tenant = serializers.CharField(source="tenant_slug", allow_null=True)
    facts = serializers.DictField(source="event.payload")


class AuditView(ApiView):
    @extend_schema(parameters=_PARAMETERS, responses=AuditEntrySerializer(many=True))
    def get(self, request: Request) -> Response:
        """Actions of people, newest first. Tenant admins see their tenants; operators and platform admins see all."""
        query = request.query_params.dict()
        limit = query.get("limit", "")
        most = min(max(int(limit), 1), _MOST) if limit.isdecimal() and len(limit) < len("1000000") else audit.PAGE
        return respond(
            AuditEntrySerializer(audit.acts(person(request), audit.parse_query(query), most=most), many=True)
        )
