"""Names for queues of several clusters: make, list, look, change, delete."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.views import View, checked, person, told
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import Scope
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.forms import RESERVED
from hekla.apps.queues import selectors, services
from hekla.apps.queues.models import Span
from hekla.apps.tenancy import selectors as tenancy
from hekla.lib import clock


class MemberQueueSerializer(serializers.Serializer[dict[str, Any]]):
    """A queue, and where it is."""

    queue = serializers.CharField()
    cluster = serializers.CharField()
    is_open = serializers.BooleanField()


class SpanWishSerializer(serializers.ModelSerializer[Span]):
    """What of it can be changed."""

    members = serializers.SlugRelatedField(
        slug_field="name", many=True, queryset=selectors.all_queues(), help_text="one of each cluster"
    )
    tenants = serializers.SlugRelatedField(
        slug_field="slug", many=True, queryset=tenancy.all_tenants(), required=False, help_text="none: open to all"
    )

    class Meta:
        model = Span
        fields = ["description", "members", "tenants"]


class NewSpanSerializer(SpanWishSerializer):
    """A new one. That a name is taken is for the service to say."""

    name = serializers.RegexField(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
        max_length=63,
        error_messages={"invalid": _("Use small letters a–z, digits and hyphens, no hyphen at either end.")},
    )

    class Meta(SpanWishSerializer.Meta):
        fields = ["name", *SpanWishSerializer.Meta.fields]

    def validate_name(self, name: str) -> str:
        """A name that addresses do not use otherwise."""
        if name in RESERVED:
            raise serializers.ValidationError(_("“%s” means something else in addresses; choose another name.") % name)
        return name


class SpanSerializer(serializers.ModelSerializer[Span]):
    """One, as far as the reader may know of its queues. Which tenants may use it is told to those who manage queues."""

    members = serializers.SerializerMethodField(help_text="names of its queues")
    queues = serializers.SerializerMethodField(help_text="the same, each with its cluster")
    tenants = serializers.SerializerMethodField(help_text="null: not for you to know; none: open to all")

    class Meta:
        model = Span
        fields = ["name", "description", "members", "queues", "tenants"]

    def get_members(self, span: Span) -> list[str]:
        """By cluster."""
        return [one.name for one in selectors.members_seen_by(span, self.context["user"])]

    @extend_schema_field(MemberQueueSerializer(many=True))
    def get_queues(self, span: Span) -> list[dict[str, Any]]:
        """By cluster."""
        found = selectors.members_seen_by(span, self.context["user"])
        return [{"queue": one.name, "cluster": one.cluster.name, "is_open": one.is_open} for one in found]

    @extend_schema_field(serializers.ListField(child=serializers.CharField(), allow_null=True))
    def get_tenants(self, span: Span) -> list[str] | None:
        """Short names."""
        manages = accounts.may(self.context["user"], Permission.MANAGE_QUEUES)
        return sorted(tenant.slug for tenant in span.tenants.all()) if manages else None


class Spans(View):
    writes = Scope.MANAGE

    @extend_schema(responses=SpanSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The names for queues of several clusters that one of your tenants may submit to."""
        user = person(request)
        return told(SpanSerializer(selectors.spans_visible_to(user), many=True, context={"user": user}))

    @extend_schema(request=NewSpanSerializer, responses={201: SpanSerializer})
    def post(self, request: Request) -> Response:
        """Make one (platform admins and operators)."""
        user = _operator(request)
        wish = checked(NewSpanSerializer(data=request.data))
        span = services.create_span(**wish, actor=actor_of(user), now=clock.now())
        return told(SpanSerializer(span, context={"user": user}), 201)


class OneSpan(View):
    writes = Scope.MANAGE

    @extend_schema(responses=SpanSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One name for queues of several clusters."""
        user = person(request)
        return told(SpanSerializer(selectors.span(name, user), context={"user": user}))

    @extend_schema(request=SpanWishSerializer(partial=True), responses=SpanSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change what is sent of it (platform admins and operators)."""
        user = person(request)
        span = selectors.span(name, user)
        require(user, Permission.MANAGE_QUEUES)
        wish = checked(SpanWishSerializer(span, data=request.data, partial=True))
        services.change_span(span, **wish, by=user, actor=actor_of(user), now=clock.now())
        return told(SpanSerializer(selectors.span(name, user), context={"user": user}))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Give the name up; its queues and their jobs stay (platform admins and operators)."""
        user = person(request)
        span = selectors.span(name, user)
        require(user, Permission.MANAGE_QUEUES)
        services.delete_span(span, actor=actor_of(user), now=clock.now())
        return Response(status=204)


def _operator(request: Request) -> User:
    user = person(request)
    require(user, Permission.MANAGE_QUEUES)
    return user
