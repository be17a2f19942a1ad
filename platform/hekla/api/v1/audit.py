"""Endpoint of the audit log: actions of people, from the event log."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.times import RestTimes
from hekla.api.views import ApiView, person
from hekla.apps.audit import selectors as audit
from hekla.apps.audit.selectors import AuditEntry

_MOST = 200


class AuditQuerySerializer(serializers.Serializer[Any]):
    person = serializers.CharField(
        required=False, max_length=200, help_text="exact user name, also of the impersonating admin"
    )
    kind = serializers.CharField(required=False, max_length=200, help_text="kind of event, for example TokenCreated")
    tenant = serializers.CharField(required=False, max_length=200, help_text="short name of the tenant")
    object = serializers.CharField(
        required=False, max_length=150, help_text="part of the object's name, or its whole subject, for example queue:7"
    )
    since = serializers.DateField(required=False, help_text="first day, in the time zone of the installation")
    until = serializers.DateField(required=False, help_text="last day")
    before = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=2**62,
        help_text="only smaller numbers: the last one of the previous page",
    )
    limit = serializers.IntegerField(default=audit.PAGE, min_value=1, max_value=_MOST)


class AuditEntrySerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(source="event.pk")
    at = serializers.DateTimeField(source="event.at")
    person = serializers.CharField(source="event.actor_name")
    impersonated_by = serializers.CharField(source="event.impersonator_name", help_text="admin; usually empty")
    session = serializers.CharField(
        source="event.session", help_text="session with a pod whose token was used; usually empty"
    )
    kind = serializers.CharField(source="event.kind")
    sentence = serializers.CharField(source="sentence.text", help_text="who did what, in the language of the request")
    object = serializers.CharField(source="object.name", help_text="name of the object, also of a deleted one")
    subject = serializers.CharField(source="event.subject")
    tenant = serializers.CharField(source="tenant_slug", allow_null=True)
    facts = serializers.DictField(source="event.payload")


class AuditView(ApiView):
    queries = {"get": AuditQuerySerializer}

    @extend_schema(responses=AuditEntrySerializer(many=True))
    def get(self, request: Request) -> Response:
        """Actions of people, newest first. Tenant admins see their tenants; operators and platform admins see all."""
        filters = dict(self.query)
        most = filters.pop("limit")
        times = RestTimes()
        found = audit.acts(person(request), audit.AuditQuery(**filters), most=most)
        return Response([_document(entry, times) for entry in found])


def _document(entry: AuditEntry, times: RestTimes) -> dict[str, Any]:
    """An entry as `AuditEntrySerializer` describes it. It is not run: with fifty entries it takes most of the time."""
    event = entry.event
    return {
        "number": event.pk,
        "at": times[event.at],
        "person": event.actor_name,
        "impersonated_by": event.impersonator_name,
        "session": event.session,
        "kind": event.kind,
        "sentence": entry.sentence.text,
        "object": entry.object.name,
        "subject": event.subject,
        "tenant": entry.tenant_slug,
        "facts": event.payload,
    }
