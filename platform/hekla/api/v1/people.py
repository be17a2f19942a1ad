"""Who asks, their tenants and their tokens."""

from datetime import timedelta

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.serializers import (
    IssuedTokenSerializer,
    NewTokenSerializer,
    PersonSerializer,
    TenantSerializer,
    TokenSerializer,
)
from hekla.api.views import View, checked, person, told
from hekla.apps.accounts import selectors, services
from hekla.apps.tenancy import selectors as tenancy
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
