"""Endpoints of saved templates, from which new jobs start."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.queries import PageQuery
from hekla.api.v1.parameters import tenant_of
from hekla.api.v1.serializers import CopySerializer
from hekla.api.views import CursorPages, DeletableViewSet, person, respond
from hekla.apps.jobs.clone import clone_spec
from hekla.apps.presets import selectors, services
from hekla.apps.presets.models import MAX_NAME, Preset
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock


class SavedTemplateSerializer(serializers.ModelSerializer[Preset]):
    """A saved template in a list. `tenant`: empty for a personal one."""

    tenant = serializers.CharField(source="tenant.slug", default="")
    owner = serializers.CharField(source="owner.username")

    class Meta:
        model = Preset
        fields = ["uid", "name", "tenant", "owner", "is_default", "created_at", "changed_at"]


class SavedTemplateDetailSerializer(SavedTemplateSerializer):
    """A saved template with its job."""

    spec = serializers.JSONField()

    class Meta(SavedTemplateSerializer.Meta):
        fields = [*SavedTemplateSerializer.Meta.fields, "spec"]


class NewSavedTemplateSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=MAX_NAME)
    tenant = serializers.CharField(default="", allow_blank=True, help_text="short name; default: only for you")
    spec = serializers.JSONField(help_text="a JobSpec document")


class SavedTemplateChangeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=MAX_NAME, required=False)
    is_default = serializers.BooleanField(required=False)


class CopyQuery(serializers.Serializer[Any]):
    tenant = serializers.CharField(
        required=False, max_length=200, help_text="one of your tenants; default: that of the template"
    )


class SavedTemplatesByName(CursorPages):
    ordering = ("name", "id")


@extend_schema_view(
    list=extend_schema(description="Your own saved templates and those of your tenants, by name."),
    retrieve=extend_schema(description="One saved template with its job."),
    destroy=extend_schema(description="Delete a saved template. Its jobs stay."),
)
class SavedTemplateViewSet(DeletableViewSet[Preset]):
    queries = {"list": PageQuery, "copy": CopyQuery}
    list_serializer_class = SavedTemplateSerializer
    serializer_class = SavedTemplateDetailSerializer
    pagination_class = SavedTemplatesByName

    def get_queryset(self) -> QuerySet[Preset]:
        return selectors.visible_to(person(self.request)).defer("spec")

    def get_object(self) -> Preset:
        return selectors.get(self.kwargs["uid"], person(self.request))

    @extend_schema(request=NewSavedTemplateSerializer, responses={201: SavedTemplateDetailSerializer})
    def create(self, request: Request) -> Response:
        """Save a job as a template. It replaces the saved template of the same name."""
        values, user = validated(NewSavedTemplateSerializer(data=request.data)), person(request)
        tenant = tenancy.get(values["tenant"], user) if values["tenant"] else None
        spec = JobSpec.parse(values["spec"])
        preset = services.save(name=values["name"], spec=spec, user=user, tenant=tenant, now=clock.now())
        return self.respond(preset, 201)

    @extend_schema(request=SavedTemplateChangeSerializer, responses=SavedTemplateDetailSerializer)
    def partial_update(self, request: Request, uid: UUID) -> Response:  # noqa: ARG002
        """Rename a saved template, or make it the default for new jobs."""
        user, now = person(request), clock.now()
        preset, values = self.get_object(), validated(SavedTemplateChangeSerializer(data=request.data))
        if "name" in values:
            preset = services.rename(preset, values["name"], user=user, now=now)
        if "is_default" in values:
            preset = services.set_default(preset, is_default=values["is_default"], user=user, now=now)
        return self.respond(preset)

    def perform_destroy(self, preset: Preset) -> None:
        services.delete(preset, user=person(self.request), now=clock.now())

    @extend_schema(responses=CopySerializer)
    def copy(self, request: Request, uid: UUID) -> Response:  # noqa: ARG002
        """The request to submit the saved template: its JobSpec with a free name."""
        preset = self.get_object()
        is_own = "tenant" not in self.query
        tenant = preset.tenant if preset.tenant and is_own else tenant_of(request)
        return respond(CopySerializer(clone_spec(selectors.spec_of(preset), tenant)))
