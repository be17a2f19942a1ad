"""Endpoints of announcements."""

from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayPages, ArrayQuery
from hekla.api.documents import validated
from hekla.api.views import ApiView, DeletableViewSet, person, respond
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import Scope
from hekla.apps.announcements import selectors, services
from hekla.apps.announcements.models import Announcement
from hekla.apps.tenancy.models import Tenant
from hekla.lib import clock


class AnnouncementSerializer(serializers.ModelSerializer[Announcement]):
    """`tenants`: whose members see it, by short name; empty: everybody. Without `begin_at` it is in force now."""

    tenants = serializers.SlugRelatedField(slug_field="slug", queryset=Tenant.objects.all(), many=True, required=False)
    begin_at = serializers.DateTimeField(required=False)

    class Meta:
        model = Announcement
        fields = ["uid", "text", "text_zh", "level", "begin_at", "end_at", "tenants"]
        read_only_fields = ["uid"]


@extend_schema_view(
    list=extend_schema(
        description="The announcements in force for you, the newest first; for those who write them, all."
    ),
    retrieve=extend_schema(description="One announcement."),
    destroy=extend_schema(description="Withdraw an announcement (operators and platform admins)."),
)
class AnnouncementViewSet(DeletableViewSet[Announcement]):
    queries = {"list": ArrayQuery}
    pagination_class = ArrayPages
    writes = Scope.MANAGE
    permission = Permission.ANNOUNCE
    list_serializer_class = serializer_class = AnnouncementSerializer

    def get_queryset(self) -> QuerySet[Announcement]:
        return selectors.visible_to(person(self.request), now=clock.now())

    def get_object(self) -> Announcement:
        return selectors.get(self.kwargs["uid"], person(self.request), now=clock.now())

    @extend_schema(request=AnnouncementSerializer, responses={201: AnnouncementSerializer})
    def create(self, request: Request) -> Response:
        """Write an announcement (operators and platform admins)."""
        values = validated(AnnouncementSerializer(data=request.data))
        tenants, user = values.pop("tenants", ()), person(request)
        made = services.announce(values=values, tenants=tenants, user=user, now=clock.now())
        return respond(AnnouncementSerializer(made), 201)

    def perform_destroy(self, found: Announcement) -> None:
        services.withdraw(found, user=person(self.request), now=clock.now())


class AnnouncementDismissalView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, uid: UUID) -> Response:
        """Hide an announcement from your pages."""
        user, now = person(request), clock.now()
        services.dismiss(selectors.get(uid, user, now=now), user=user, now=now)
        return Response(status=204)
