"""Endpoints of invitations to a tenant, for its admins."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import validated
from hekla.api.views import ApiView, person
from hekla.apps.accounts.roles import PLATFORM_ROLE_LABELS, TENANT_ROLE_LABELS, Permission, TenantRole
from hekla.apps.invitations import letters, selectors, services
from hekla.apps.invitations.models import Invitation
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services as tenancy_services
from hekla.apps.tenancy.models import Tenant
from hekla.lib import clock


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """`mail_error`: why the mail has not been sent."""

    role = serializers.CharField()
    platform_role = serializers.CharField()
    invited_by = serializers.SlugRelatedField[Any](slug_field="username", read_only=True)
    mail_error = serializers.SerializerMethodField()

    class Meta:
        model = Invitation
        fields = ["id", "email", "role", "platform_role", "invited_by", "created_at", "expires_at", "mail_error"]

    def get_mail_error(self, invitation: Invitation) -> str:
        letter = getattr(invitation, "letter", None)
        return letter.error if letter else ""


class NewInvitationSerializer(serializers.Serializer[Any]):
    email = serializers.EmailField(required=False, allow_blank=True, default="")
    role = serializers.ChoiceField([str(role) for role in TENANT_ROLE_LABELS], default=TenantRole.MEMBER)
    platform_role = serializers.ChoiceField(
        [str(role) for role in PLATFORM_ROLE_LABELS], required=False, allow_blank=True, default=""
    )


class IssuedInvitationSerializer(InvitationSerializer):
    """The link, shown once. `sent`: it is mailed too."""

    link = serializers.URLField()
    sent = serializers.BooleanField()

    class Meta(InvitationSerializer.Meta):
        fields = [*InvitationSerializer.Meta.fields, "link", "sent"]


class InvitationListView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=InvitationSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Invitations that are neither accepted nor revoked, newest first."""
        return array(request, selectors.waiting(_managed(request, slug)), InvitationSerializer)

    @extend_schema(request=NewInvitationSerializer, responses={201: IssuedInvitationSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Invite a person. Only platform admins can give a platform role."""
        tenant, values = _managed(request, slug), validated(NewInvitationSerializer(data=request.data))
        return _issued(request, *services.invite(tenant, **values, by=person(request), now=clock.now()))


class InvitationView(ApiView):
    @extend_schema(operation_id="tenants_invitations_resend", request=None, responses={201: IssuedInvitationSerializer})
    def post(self, request: Request, slug: str, invitation_id: int) -> Response:
        """Create a new link, valid for a week. It revokes the earlier one."""
        tenant = _managed(request, slug)
        return _issued(request, *services.resend(tenant, invitation_id, by=person(request), now=clock.now()))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, invitation_id: int) -> Response:
        """Revoke an invitation."""
        services.revoke(_managed(request, slug), invitation_id, by=person(request), now=clock.now())
        return Response(status=204)


def _managed(request: Request, slug: str) -> Tenant:
    tenant = tenancy.get(slug, person(request))
    tenancy_services.require(person(request), tenant, Permission.MANAGE_MEMBERS)
    return tenant


def _issued(request: Request, invitation: Invitation, secret: str) -> Response:
    link = request.build_absolute_uri(reverse("invitations:sign_up", args=[secret]))
    posted = letters.post([(invitation, link)], now=clock.now())
    facts = {**InvitationSerializer(invitation).data, "link": link, "sent": invitation.pk in posted}
    return Response(facts, status=201)
