"""Who asks, their tenants and their tokens."""

from datetime import timedelta

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.serializers import (
    IssuedTokenSerializer,
    NewTokenSerializer,
    PersonSerializer,
    RetentionSerializer,
    TenantSerializer,
    TokenSerializer,
)
from hekla.api.views import View, checked, person, told
from hekla.apps.accounts import selectors, services
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services as tenants
from hekla.lib import clock


class Me(View):
    @extend_schema(responses=PersonSerializer)
    def get(self, request: Request) -> Response:
        """Who the token or the session stands for."""
        user = person(request)
        facts = {name: getattr(user, name) for name in ("username", "display_name", "platform_role")}
        return told(PersonSerializer({**facts, "tenants": tenancy.own(user)}))


class Tenants(View):
    @extend_schema(responses=TenantSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The tenants that you may see."""
        return told(TenantSerializer(tenancy.visible_to(person(request)), many=True))


class Retention(View):
    @extend_schema(responses=RetentionSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """For how long a tenant keeps the logs and the history of deleted jobs, in days after the deletion."""
        return told(RetentionSerializer(tenancy.get(slug, person(request))))

    @extend_schema(request=RetentionSerializer, responses=RetentionSerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Change it (admins of the tenant and of the platform)."""
        user = person(request)
        tenant = tenancy.get(slug, user)
        tenants.require(user, tenant, Permission.SET_RETENTION)
        kept = {"log_days": tenant.log_days, "history_days": tenant.history_days}
        wish = {**kept, **checked(RetentionSerializer(data=request.data))}
        tenants.set_retention(tenant, **wish, actor=actor_of(user), now=clock.now())
        return told(RetentionSerializer(tenancy.get(slug, user)))


class Tokens(View):
    @extend_schema(responses=TokenSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Your tokens; of each only its beginning is known."""
        return told(TokenSerializer(selectors.tokens_of(person(request)), many=True))

    @extend_schema(request=NewTokenSerializer, responses={201: IssuedTokenSerializer})
    def post(self, request: Request) -> Response:
        """Make a token. It is told this once."""
        wish = checked(NewTokenSerializer(data=request.data))
        lifetime = timedelta(days=wish["days"])
        secret = services.create_token(person(request), name=wish["name"], lifetime=lifetime, now=clock.now())
        return Response({"token": secret}, status=201)


class Token(View):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, token_id: int) -> Response:
        """Revoke one of your tokens, at once."""
        services.revoke_token(person(request), token_id, now=clock.now())
        return Response(status=204)
