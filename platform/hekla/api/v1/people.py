"""Endpoints of the signed-in person, tenants, roles, retention and API tokens."""

from datetime import timedelta

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import validated
from hekla.api.session_tokens import SessionAccess
from hekla.api.v1.serializers import (
    IssuedTokenSerializer,
    NewTokenSerializer,
    PersonSerializer,
    RetentionSerializer,
    RoleSerializer,
    TenantSerializer,
    TokenSerializer,
)
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts import selectors, services
from hekla.apps.accounts.models import ApiToken
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import SESSION, Scope
from hekla.apps.accounts.services import actor_of
from hekla.apps.signin import services as signin
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services as tenants
from hekla.domain.errors import NotFound
from hekla.lib import clock


class MeView(ApiView):
    @extend_schema(responses=PersonSerializer)
    def get(self, request: Request) -> Response:
        """The person of the token or the session."""
        user = person(request)
        facts = {name: getattr(user, name) for name in ("username", "display_name", "platform_role")}
        tenants = tenancy.own(user)
        if isinstance(request.auth, SessionAccess):
            tenants = tenants.filter(slug=request.auth.tenant)
        return respond(PersonSerializer({**facts, "scopes": _scopes(request), "tenants": tenants}))


def _scopes(request: Request) -> list[str]:
    if isinstance(request.auth, SessionAccess):
        return [SESSION]
    return request.auth.scopes if isinstance(request.auth, ApiToken) else []


class TenantsView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=TenantSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The tenants that you can see."""
        return array(request, tenancy.visible_to(person(request)), TenantSerializer)


class RolesView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=RoleSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The permissions of each role, for people who can give roles."""
        tables = tenancy.role_tables(person(request))
        roles = [
            {"place": table.place, "role": role, "permissions": [one for one in Permission if one in held]}
            for table in tables
            for role, held in table.allowed.items()
        ]
        return array(request, roles, RoleSerializer)


class RetentionView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(responses=RetentionSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Retention of logs and history of deleted jobs, in days after the deletion."""
        return respond(RetentionSerializer(tenancy.get(slug, person(request))))

    @extend_schema(request=RetentionSerializer, responses=RetentionSerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Change the retention (tenant admins and platform admins)."""
        user = person(request)
        tenant = tenancy.get(slug, user)
        tenants.require(user, tenant, Permission.SET_RETENTION)
        current = {"log_days": tenant.log_days, "history_days": tenant.history_days}
        values = {**current, **validated(RetentionSerializer(data=request.data))}
        tenants.set_retention(tenant, **values, actor=actor_of(user), now=clock.now())
        return respond(RetentionSerializer(tenancy.get(slug, user)))


class SecondFactorView(ApiView):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, username: str) -> Response:
        """Turn off the second factors of a person: app, keys and recovery codes (platform admins)."""
        services.require(person(request), Permission.MANAGE_PEOPLE)
        user = selectors.by_username(username)
        if user is None:
            raise NotFound(_("Unknown person."))
        signin.reset(user, by=person(request), now=clock.now())
        return Response(status=204)


class TokenListView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=TokenSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Your tokens. Only the first characters of each are shown."""
        return array(request, selectors.tokens_of(person(request)), TokenSerializer)

    @extend_schema(request=NewTokenSerializer, responses={201: IssuedTokenSerializer})
    def post(self, request: Request) -> Response:
        """Create a token. It is shown only once. Default of `scopes`: read and jobs.

        In a browser session, a token with the scope `admin` needs `current_password`.
        """
        values = validated(NewTokenSerializer(data=request.data))
        lifetime = timedelta(days=values["days"])
        scopes = {Scope(name) for name in values["scopes"]}
        if Scope.ADMIN in scopes and request.auth is None:
            services.prove_password(person(request), values["current_password"])
        secret = services.create_token(
            person(request), name=values["name"], lifetime=lifetime, scopes=scopes, now=clock.now()
        )
        return Response({"token": secret}, status=201)


class TokenView(ApiView):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, token_id: int) -> Response:
        """Revoke one of your tokens immediately."""
        services.revoke_token(person(request), token_id, now=clock.now())
        return Response(status=204)
