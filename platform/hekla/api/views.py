"""Base classes of API views: authentication, throttling, permissions, pagination and validation."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.mixins import DestroyModelMixin, ListModelMixin, RetrieveModelMixin
from rest_framework.pagination import CursorPagination
from rest_framework.permissions import SAFE_METHODS, BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from hekla.api import preconditions
from hekla.api.parsers import BoundedJSONParser
from hekla.api.queries import MAX_PAGE, NoQuery, PageQuery, own_parameters, parsed_query
from hekla.api.session_tokens import SessionAccess
from hekla.api.throttles import PerPersonThrottle
from hekla.apps.accounts.models import ApiToken, User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import MissingScope, Scope
from hekla.apps.accounts.services import require
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import within_session
from hekla.apps.signin import rule
from hekla.domain.errors import NotFound

M = TypeVar("M", bound=Model)


class HasTokenScope(BasePermission):
    """Requires the scope `read` of a token for reads, and the scope `writes` of the view for changes."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises MissingScope. Requests without a token need no scope."""
        needed = Scope.READ if request.method in SAFE_METHODS else getattr(view, "writes", Scope.ADMIN)
        if isinstance(request.auth, ApiToken) and not request.auth.allows(needed):
            raise MissingScope(needed)
        return True


class HasPlatformPermission(BasePermission):
    """Requires the platform permission of the view (`permission`) for changes."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises Forbidden."""
        permission: Permission | None = getattr(view, "permission", None)
        if permission is not None and request.method not in SAFE_METHODS:
            require(person(request), permission)
        return True


class ApiView(APIView):
    """An endpoint of the API: signed in, throttled, JSON.

    `writes`: the token scope for changes; by default the widest.
    `permission`: the platform permission for changes; None: none.
    `queries`: the query parameters, by method or action; None: the view checks them. No others are accepted.
    `query`: the validated query parameters of this request.
    """

    queries: ClassVar[Mapping[str, type[Serializer[Any]] | None]] = {}
    query: dict[str, Any]
    writes: ClassVar[Scope] = Scope.ADMIN
    permission: ClassVar[Permission | None] = None
    permission_classes: tuple[type[BasePermission], ...] = (IsAuthenticated, HasTokenScope, HasPlatformPermission)
    parser_classes = (BoundedJSONParser,)
    throttle_classes: tuple[type[BaseThrottle], ...] = (PerPersonThrottle,)

    def perform_authentication(self, request: Request) -> None:
        """Authenticate by token or session. Raises SecondFactorMissing."""
        super().perform_authentication(request)
        if isinstance(request.user, User):
            rule.require(request.user)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # noqa: ANN401
        """Handle the request. `If-Match` is compared again once the service has locked what it changes."""
        needed = changes.requiring(lambda: self._require_match(self.request, *args, **kwargs))
        with needed, within_session(self._session_name):
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Check the person, the limits, the query parameters and `If-Match`."""
        super().initial(request, *args, **kwargs)
        for name, value in request.query_params.items():
            if "\0" in f"{name}{value}":
                raise ValidationError({name.replace("\0", ""): [_("NUL characters are not allowed.")]})
        described = self.query_serializer()
        is_allowed = hasattr(self, str(request.method).lower())  # otherwise Django REST framework answers 405
        self.query = parsed_query(described, request.query_params) if described and is_allowed else {}
        self._require_match(request, *args, **kwargs)

    def _session_name(self) -> str:
        """The session with whose token this request was made; empty without one."""
        access = self.request.auth
        return access.session if isinstance(access, SessionAccess) else ""

    def _require_match(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Raises PreconditionFailed if the resource has another ETag than `If-Match` says."""
        if request.method in preconditions.CHANGES and (wanted := request.headers.get("If-Match")):
            preconditions.require_unchanged(wanted, self._now(request, *args, **kwargs))

    def query_serializer(self) -> type[Serializer[Any]] | None:
        """The query parameters of this method or action; None: the view checks them."""
        method = str(self.request.method).lower()
        return self.queries.get(getattr(self, "action", None) or method, NoQuery)

    def _now(self, request: Request, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """The data of a GET of this resource. Raises NotFound for views without GET."""
        look = getattr(self, "get", None)
        if look is None:
            raise NotFound(_("This resource has no ETag, so If-Match cannot be used."))
        return look(request, *args, **kwargs).data


class ResourceViewSet(ApiView, ListModelMixin, RetrieveModelMixin, GenericViewSet[M]):
    """A list of resources, and each resource. Subclasses define `get_object` and further actions."""

    queries = {"list": PageQuery}
    list_serializer_class: ClassVar[type[BaseSerializer[Any]]]

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        """`list_serializer_class` in the list, `serializer_class` for one resource."""
        found = self.list_serializer_class if self.action == "list" else self.serializer_class
        assert found is not None  # noqa: S101  (each subclass names both)
        return found

    def respond(self, resource: M, status: int = 200) -> Response:
        """A response with one resource, in its detail form."""
        return Response(self.get_serializer(resource).data, status=status)


class DeletableViewSet(ResourceViewSet[M], DestroyModelMixin):
    """Resources that can be deleted, with `perform_destroy`."""


class UnknownAddressView(ApiView):
    """Answers unknown addresses under `/api/` with a problem document."""

    schema = None
    writes = Scope.READ

    def query_serializer(self) -> None:
        """No parameters are known at an unknown address."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Raises NotFound for every method."""
        super().initial(request, *args, **kwargs)
        raise NotFound(_("Unknown address. All addresses are listed at /api/v1/schema."))


class CursorPages(CursorPagination):
    """Cursor pagination with `limit` and `cursor`. `next` in the response is the URL of the next page."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = MAX_PAGE
    ordering: tuple[str, ...] = ("-submitted_at", "-id")

    def get_page_size(self, request: Request) -> int:
        """The size that the request asks for. Raises ValidationError: a page of another size would be a surprise."""
        size: int = own_parameters(PageQuery, request.query_params)["limit"]
        return size

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of a page, with nullable fields in JSON Schema's form (`type: [string, null]`), as elsewhere."""
        address = {"type": ["string", "null"], "format": "uri"}
        properties = {"next": address, "previous": address, "results": schema}
        return {"type": "object", "required": ["next", "previous", "results"], "properties": properties}


def person(request: Request) -> User:
    """The signed-in person of the request."""
    assert isinstance(request.user, User)  # noqa: S101  (`IsAuthenticated` refuses others)
    return request.user


def respond(serializer: BaseSerializer[Any], status: int = 200) -> Response:
    """A response with this serializer's data."""
    return Response(serializer.data, status=status)
