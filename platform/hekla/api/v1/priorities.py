"""Endpoints of priority classes."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayPages, ArrayQuery
from hekla.api.documents import refuse_reserved, validated
from hekla.api.views import DeletableViewSet, person, respond
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import Scope
from hekla.apps.accounts.services import actor_of
from hekla.apps.priorities import selectors, services
from hekla.apps.priorities.models import PriorityClass
from hekla.apps.tenancy.models import Tenant
from hekla.lib import clock


class PriorityClassSummarySerializer(serializers.ModelSerializer[PriorityClass]):
    class Meta:
        model = PriorityClass
        fields = ["name", "value", "description", "is_default", "never_preempts", "is_offered"]


class PriorityClassSerializer(serializers.ModelSerializer[PriorityClass]):
    """`tenants`: allowed tenants by short name; empty: all. They replace the present ones."""

    tenants = serializers.SlugRelatedField(slug_field="slug", queryset=Tenant.objects.all(), many=True, required=False)

    class Meta:
        model = PriorityClass
        fields = ["value", "description", "is_default", "never_preempts", "is_offered", "tenants"]


class NewPriorityClassSerializer(PriorityClassSerializer):
    name = serializers.SlugField(max_length=63, validators=[refuse_reserved])

    class Meta(PriorityClassSerializer.Meta):
        fields = ["name", *PriorityClassSerializer.Meta.fields]


@extend_schema_view(
    list=extend_schema(
        description="The classes that your jobs can use, highest first. People who can see everything get all classes."
    ),
    retrieve=extend_schema(description="One priority class."),
    destroy=extend_schema(description="Delete a class. Submitted jobs keep their priority (platform admins)."),
)
class PriorityClassViewSet(DeletableViewSet[PriorityClass]):
    queries = {"list": ArrayQuery}
    pagination_class = ArrayPages
    writes = Scope.MANAGE
    permission = Permission.MANAGE_PRIORITY_CLASSES
    list_serializer_class = serializer_class = PriorityClassSummarySerializer

    def get_queryset(self) -> QuerySet[PriorityClass]:
        return selectors.visible_to(person(self.request))

    def get_object(self) -> PriorityClass:
        return selectors.get(self.kwargs["name"], person(self.request))

    @extend_schema(request=NewPriorityClassSerializer, responses={201: NewPriorityClassSerializer})
    def create(self, request: Request) -> Response:
        """Create a priority class (platform admins)."""
        values = validated(NewPriorityClassSerializer(data=request.data))
        name, tenants = values.pop("name"), values.pop("tenants", ())
        actor = actor_of(person(request))
        made = services.create(name=name, values=values, tenants=tenants, actor=actor, now=clock.now())
        return respond(NewPriorityClassSerializer(made), 201)

    @extend_schema(request=PriorityClassSerializer, responses=NewPriorityClassSerializer)
    def partial_update(self, request: Request, name: str) -> Response:  # noqa: ARG002
        """Change a class for new jobs. Submitted jobs keep their priority (platform admins)."""
        values = validated(PriorityClassSerializer(data=request.data, partial=True))
        tenants, actor = values.pop("tenants", None), actor_of(person(request))
        services.change(self.get_object(), values, tenants=tenants, actor=actor, now=clock.now())
        return respond(NewPriorityClassSerializer(self.get_object()))

    def perform_destroy(self, found: PriorityClass) -> None:
        services.delete(found, actor=actor_of(person(self.request)), now=clock.now())
