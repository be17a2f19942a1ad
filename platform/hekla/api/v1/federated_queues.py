"""Endpoints of federated queues: one name for queues of several clusters."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayPages, ArrayQuery
from hekla.api.documents import refuse_reserved, validated
from hekla.api.views import DeletableViewSet, person
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import Scope
from hekla.apps.accounts.services import actor_of
from hekla.apps.queues import selectors, services
from hekla.apps.queues.models import FederatedQueue
from hekla.apps.tenancy import selectors as tenancy
from hekla.lib import clock


class MemberQueueSerializer(serializers.Serializer[dict[str, Any]]):
    """A queue and its cluster."""

    queue = serializers.CharField()
    cluster = serializers.CharField()
    is_open = serializers.BooleanField()


class FederatedQueueChangeSerializer(serializers.ModelSerializer[FederatedQueue]):
    """The fields that can be changed."""

    members = serializers.SlugRelatedField(
        slug_field="name", many=True, queryset=selectors.all_queues(), help_text="one queue per cluster"
    )
    tenants = serializers.SlugRelatedField(
        slug_field="slug", many=True, queryset=tenancy.all_tenants(), required=False, help_text="empty: all tenants"
    )

    class Meta:
        model = FederatedQueue
        fields = ["description", "members", "tenants"]


class NewFederatedQueueSerializer(FederatedQueueChangeSerializer):
    """A new federated queue. The service checks that its name is free."""

    name = serializers.RegexField(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
        max_length=63,
        validators=[refuse_reserved],
        error_messages={
            "invalid": _(
                "Use lowercase letters a–z, digits and hyphens. The first and last character cannot be a hyphen."
            )
        },
    )

    class Meta(FederatedQueueChangeSerializer.Meta):
        fields = ["name", *FederatedQueueChangeSerializer.Meta.fields]


class FederatedQueueSerializer(serializers.ModelSerializer[FederatedQueue]):
    """A federated queue with the queues that you can see. Only people who can manage queues see its tenants."""

    members = serializers.SerializerMethodField(help_text="names of its queues")
    queues = serializers.SerializerMethodField(help_text="queues with their clusters")
    tenants = serializers.SerializerMethodField(help_text="null: hidden; empty: all tenants")

    class Meta:
        model = FederatedQueue
        fields = ["name", "description", "members", "queues", "tenants"]

    def get_members(self, federated: FederatedQueue) -> list[str]:
        """By cluster."""
        return [one.name for one in selectors.visible_members(federated, self.context["user"])]

    @extend_schema_field(MemberQueueSerializer(many=True))
    def get_queues(self, federated: FederatedQueue) -> list[dict[str, Any]]:
        """By cluster."""
        found = selectors.visible_members(federated, self.context["user"])
        return [{"queue": one.name, "cluster": one.cluster.name, "is_open": one.is_open} for one in found]

    @extend_schema_field(serializers.ListField(child=serializers.CharField(), allow_null=True))
    def get_tenants(self, federated: FederatedQueue) -> list[str] | None:
        """Short names."""
        manages = accounts.may(self.context["user"], Permission.MANAGE_QUEUES)
        return sorted(tenant.slug for tenant in federated.tenants.all()) if manages else None


@extend_schema_view(
    list=extend_schema(description="The federated queues that your tenants can submit to."),
    retrieve=extend_schema(description="One federated queue."),
    destroy=extend_schema(
        description="Delete a federated queue. Its queues and their jobs stay (platform admins and operators)."
    ),
)
class FederatedQueueViewSet(DeletableViewSet[FederatedQueue]):
    queries = {"list": ArrayQuery}
    pagination_class = ArrayPages
    writes = Scope.MANAGE
    permission = Permission.MANAGE_QUEUES
    list_serializer_class = serializer_class = FederatedQueueSerializer

    def get_queryset(self) -> QuerySet[FederatedQueue]:
        return selectors.federated_visible_to(person(self.request))

    def get_object(self) -> FederatedQueue:
        return selectors.federated(self.kwargs["name"], person(self.request))

    def get_serializer_context(self) -> dict[str, Any]:
        return {"user": person(self.request)}

    @extend_schema(request=NewFederatedQueueSerializer, responses={201: FederatedQueueSerializer})
    def create(self, request: Request) -> Response:
        """Create a federated queue (platform admins and operators)."""
        values = validated(NewFederatedQueueSerializer(data=request.data))
        return self.respond(services.create_federated(**values, actor=actor_of(person(request)), now=clock.now()), 201)

    @extend_schema(request=FederatedQueueChangeSerializer(partial=True), responses=FederatedQueueSerializer)
    def partial_update(self, request: Request, name: str) -> Response:  # noqa: ARG002
        """Change the given fields (platform admins and operators)."""
        user, federated = person(request), self.get_object()
        values = validated(FederatedQueueChangeSerializer(federated, data=request.data, partial=True))
        services.change_federated(federated, **values, by=user, actor=actor_of(user), now=clock.now())
        return self.respond(self.get_object())

    def perform_destroy(self, federated: FederatedQueue) -> None:
        services.delete_federated(federated, actor=actor_of(person(self.request)), now=clock.now())
