"""Endpoints of the gallery: templates that admins publish, and jobs submitted from them."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.queries import PageQuery
from hekla.api.v1.parameters import TenantQuery, tenant_of
from hekla.api.v1.serializers import SubmittedSerializer
from hekla.api.views import CursorPages, DeletableViewSet, person, respond
from hekla.apps.gallery import selectors, services
from hekla.apps.gallery.models import Template
from hekla.apps.jobs.facts import spec_of
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock


class CardSerializer(serializers.ModelSerializer[Template]):
    """A template in a list. `tenant`: empty for all tenants."""

    tenant = serializers.CharField(source="tenant.slug", default="")

    class Meta:
        model = Template
        fields = ["uid", "title", "description", "tenant", "version", "published_at"]


class OpenFieldSerializer(serializers.Serializer[Any]):
    """`place`: path in the JobSpec, with names of tasks, for example tasks.worker.replicas."""

    place = serializers.CharField(max_length=300)
    least = serializers.CharField(max_length=64, default="", allow_blank=True)
    most = serializers.CharField(max_length=64, default="", allow_blank=True)
    choices = serializers.ListField(child=serializers.CharField(max_length=500), max_length=50, default=list)


class CardDetailSerializer(CardSerializer):
    """A template with its job and its open fields."""

    spec = serializers.SerializerMethodField()
    fields_open = serializers.SerializerMethodField()

    class Meta(CardSerializer.Meta):
        fields = [*CardSerializer.Meta.fields, "spec", "fields_open"]

    def get_spec(self, template: Template) -> dict[str, Any]:
        """A JobSpec."""
        return selectors.spec_of(selectors.latest(template)).document()

    @extend_schema_field(OpenFieldSerializer(many=True))
    def get_fields_open(self, template: Template) -> Any:  # noqa: ANN401  (serialized data)
        """The open fields."""
        return OpenFieldSerializer(selectors.open_fields(selectors.latest(template)), many=True).data


class PublishSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(max_length=80)
    description = serializers.CharField(max_length=2000, default="", allow_blank=True)
    tenant = serializers.CharField(default="", allow_blank=True, help_text="short name; default: all tenants")
    spec = serializers.JSONField(help_text="a JobSpec document")
    fields_open = OpenFieldSerializer(many=True, default=list)
    template = serializers.UUIDField(default=None, allow_null=True, help_text="publish a new version of this one")


class BeginSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=60)
    version = serializers.IntegerField(default=None, allow_null=True, help_text="reject if the version has changed")
    values = serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False), default=dict, help_text="values by field"
    )


class TemplatesByTitle(CursorPages):
    ordering = ("title", "id")


@extend_schema_view(
    list=extend_schema(description="The templates that you can use, by title."),
    retrieve=extend_schema(description="One template: its job and its open fields."),
    destroy=extend_schema(description="Delete a template. Its jobs stay."),
)
class GalleryViewSet(DeletableViewSet[Template]):
    queries = {"list": PageQuery, "begin": TenantQuery}
    list_serializer_class = CardSerializer
    serializer_class = CardDetailSerializer
    pagination_class = TemplatesByTitle

    def get_queryset(self) -> QuerySet[Template]:
        return selectors.visible_to(person(self.request))

    def get_object(self) -> Template:
        return selectors.get(self.kwargs["uid"], person(self.request))

    @extend_schema(request=PublishSerializer, responses={201: CardDetailSerializer})
    def create(self, request: Request) -> Response:
        """Publish a template, or the next version of one."""
        values, user = validated(PublishSerializer(data=request.data)), person(request)
        made = services.publish(
            title=values["title"],
            description=values["description"],
            spec=JobSpec.parse(values["spec"]),
            fields=values["fields_open"],
            tenant=tenancy.get(values["tenant"], user) if values["tenant"] else None,
            template=selectors.get(values["template"], user) if values["template"] else None,
            user=user,
            now=clock.now(),
        )
        return self.respond(made, 201)

    def perform_destroy(self, template: Template) -> None:
        services.withdraw(template, user=person(self.request), now=clock.now())

    @extend_schema(request=BeginSerializer, responses={201: SubmittedSerializer})
    def begin(self, request: Request, uid: UUID) -> Response:  # noqa: ARG002
        """Submit the job of a template with values for its open fields. Locked fields are rejected."""
        user, values = person(request), validated(BeginSerializer(data=request.data))
        values_by_name = {"name": values["name"], "values": values["values"], "expected_version": values["version"]}
        job = services.begin(self.get_object(), **values_by_name, tenant=tenant_of(request), user=user, now=clock.now())
        return respond(SubmittedSerializer({"job": job, "warnings": spec_of(job).remarks}), 201)
