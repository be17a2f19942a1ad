"""The gallery: templates that admins publish, and jobs that begin with them."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.asked import tenant_of
from hekla.api.v1.jobs import SUBMISSION
from hekla.api.v1.serializers import SubmittedSerializer
from hekla.api.views import Paging, View, checked, person, told
from hekla.apps.gallery import selectors, services
from hekla.apps.gallery.models import Template
from hekla.apps.jobs.facts import spec_of
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock


class CardSerializer(serializers.ModelSerializer[Template]):
    """A template in a list. `tenant`: empty where it is for all."""

    tenant = serializers.CharField(source="tenant.slug", default="")

    class Meta:
        model = Template
        fields = ["uid", "title", "description", "tenant", "version", "published_at"]


class OpenFieldSerializer(serializers.Serializer[Any]):
    """`place`: the names on the way to it in the JobSpec, a task by its name: tasks.worker.replicas."""

    place = serializers.CharField(max_length=300)
    least = serializers.CharField(max_length=64, default="", allow_blank=True)
    most = serializers.CharField(max_length=64, default="", allow_blank=True)
    choices = serializers.ListField(child=serializers.CharField(max_length=500), max_length=50, default=list)


class CardDetailSerializer(CardSerializer):
    """A template with its job, and what of it is open."""

    spec = serializers.SerializerMethodField()
    fields_open = serializers.SerializerMethodField()

    class Meta(CardSerializer.Meta):
        fields = [*CardSerializer.Meta.fields, "spec", "fields_open"]

    def get_spec(self, template: Template) -> dict[str, Any]:
        """A JobSpec."""
        return selectors.spec_of(selectors.latest(template)).document()

    @extend_schema_field(OpenFieldSerializer(many=True))
    def get_fields_open(self, template: Template) -> Any:  # noqa: ANN401  (what the serializer makes of them)
        """What may be filled in."""
        return OpenFieldSerializer(selectors.open_fields(selectors.latest(template)), many=True).data


class PublishSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(max_length=80)
    description = serializers.CharField(max_length=2000, default="", allow_blank=True)
    tenant = serializers.CharField(default="", allow_blank=True, help_text="short name; without it for all tenants")
    spec = serializers.JSONField(help_text="a JobSpec document")
    fields_open = OpenFieldSerializer(many=True, default=list)
    template = serializers.UUIDField(default=None, allow_null=True, help_text="of which this is the next version")


class BeginSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=60)
    version = serializers.IntegerField(default=None, allow_null=True, help_text="refuse where it is another by now")
    values = serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False), default=dict, help_text="texts by place"
    )


class ByTitle(Paging):
    ordering = ("title", "id")


class Gallery(View, ListAPIView[Template]):
    serializer_class = CardSerializer
    pagination_class = ByTitle

    def get_queryset(self) -> QuerySet[Template]:
        return selectors.visible_to(person(self.request))

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401
        """The templates that you may begin jobs with, by title."""
        return super().get(request, *args, **kwargs)

    @extend_schema(request=PublishSerializer, responses={201: CardDetailSerializer})
    def post(self, request: Request) -> Response:
        """Publish a template, or the next version of one."""
        asked, user = checked(PublishSerializer(data=request.data)), person(request)
        template = selectors.get(asked["template"], user) if asked["template"] else None
        tenant = tenancy.get(asked["tenant"], user) if asked["tenant"] else None
        made = services.publish(
            title=asked["title"],
            description=asked["description"],
            spec=JobSpec.parse(asked["spec"]),
            fields=asked["fields_open"],
            tenant=tenant,
            template=template,
            user=user,
            now=clock.now(),
        )
        return told(CardDetailSerializer(made), 201)


class OneCard(View):
    @extend_schema(responses=CardDetailSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """One template: its job, and what of it is open."""
        return told(CardDetailSerializer(selectors.get(uid, person(request))))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID) -> Response:
        """Offer it no more; jobs that were begun with it stay."""
        user = person(request)
        services.withdraw(selectors.get(uid, user), user=user, now=clock.now())
        return Response(status=204)


class Begin(View):
    @extend_schema(parameters=SUBMISSION[:1], request=BeginSerializer, responses={201: SubmittedSerializer})
    def post(self, request: Request, uid: UUID) -> Response:
        """Submit the job of a template with values in its open fields; a locked one is refused."""
        user, asked = person(request), checked(BeginSerializer(data=request.data))
        given = {"name": asked["name"], "values": asked["values"], "seen": asked["version"]}
        template = selectors.get(uid, user)
        job = services.begin(template, **given, tenant=tenant_of(request), user=user, now=clock.now())
        return told(SubmittedSerializer({"job": job, "warnings": spec_of(job).remarks}), 201)
