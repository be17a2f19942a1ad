"""Presets: what jobs are begun with."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.asked import tenant_of
from hekla.api.v1.serializers import CopySerializer
from hekla.api.views import Paging, View, checked, person, told
from hekla.apps.jobs.copies import begun_with
from hekla.apps.presets import selectors, services
from hekla.apps.presets.models import MAX_NAME, Preset
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock


class PresetSerializer(serializers.ModelSerializer[Preset]):
    """A preset in a list. `tenant`: empty where it is its owner's alone."""

    tenant = serializers.CharField(source="tenant.slug", default="")
    owner = serializers.CharField(source="owner.username")

    class Meta:
        model = Preset
        fields = ["uid", "name", "tenant", "owner", "is_default", "created_at", "changed_at"]


class PresetDetailSerializer(PresetSerializer):
    """A preset with its job."""

    spec = serializers.JSONField()

    class Meta(PresetSerializer.Meta):
        fields = [*PresetSerializer.Meta.fields, "spec"]


class NewPresetSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=MAX_NAME)
    tenant = serializers.CharField(default="", allow_blank=True, help_text="short name; without it yours alone")
    spec = serializers.JSONField(help_text="a JobSpec document")


class PresetChangeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=MAX_NAME, required=False)
    is_default = serializers.BooleanField(required=False)


class ByName(Paging):
    ordering = ("name", "id")


class Presets(View, ListAPIView[Preset]):
    serializer_class = PresetSerializer
    pagination_class = ByName

    def get_queryset(self) -> QuerySet[Preset]:
        return selectors.visible_to(person(self.request)).defer("spec")

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401
        """Your own presets and those of your tenants, by name."""
        return super().get(request, *args, **kwargs)

    @extend_schema(request=NewPresetSerializer, responses={201: PresetDetailSerializer})
    def post(self, request: Request) -> Response:
        """Keep a job under a name, in the place of what was kept there."""
        asked, user = checked(NewPresetSerializer(data=request.data)), person(request)
        tenant = tenancy.get(asked["tenant"], user) if asked["tenant"] else None
        spec = JobSpec.parse(asked["spec"])
        preset = services.save(name=asked["name"], spec=spec, user=user, tenant=tenant, now=clock.now())
        return told(PresetDetailSerializer(preset), 201)


class OnePreset(View):
    @extend_schema(responses=PresetDetailSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """One preset, with its job."""
        return told(PresetDetailSerializer(selectors.get(uid, person(request))))

    @extend_schema(request=PresetChangeSerializer, responses=PresetDetailSerializer)
    def patch(self, request: Request, uid: UUID) -> Response:
        """Give it another name, or let new jobs begin with it."""
        user, now = person(request), clock.now()
        preset, asked = selectors.get(uid, user), checked(PresetChangeSerializer(data=request.data))
        if "name" in asked:
            preset = services.rename(preset, asked["name"], user=user, now=now)
        if "is_default" in asked:
            preset = services.set_default(preset, is_default=asked["is_default"], user=user, now=now)
        return told(PresetDetailSerializer(preset))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID) -> Response:
        """Forget it; jobs that were begun with it stay."""
        user = person(request)
        services.delete(selectors.get(uid, user), user=user, now=clock.now())
        return Response(status=204)


class Begun(View):
    @extend_schema(
        parameters=[OpenApiParameter("tenant", str, description="for which of your tenants; else the preset's")],
        responses=CopySerializer,
    )
    def get(self, request: Request, uid: UUID) -> Response:
        """What to send to begin a job with it: its JobSpec under a name that is free."""
        preset = selectors.get(uid, person(request))
        asked = request.query_params.get("tenant")
        tenant = preset.tenant if preset.tenant and not asked else tenant_of(request)
        return told(CopySerializer(begun_with(selectors.spec_of(preset), tenant)))
