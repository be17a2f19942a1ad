"""What all addresses have in common: who asks, how much, and in which form."""

from typing import Any, ClassVar

from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from hekla.api import etags
from hekla.api.parsers import BoundedJSON
from hekla.api.throttles import PerPerson
from hekla.apps.accounts.models import ApiToken, User
from hekla.apps.accounts.scopes import MissingScope, Scope
from hekla.domain.errors import NotFound


class View(APIView):
    """An address of the API: signed in, counted, JSON.

    `writes`: the scope that a token must have to change something here; who forgets to say it asks for the most.
    """

    writes: ClassVar[Scope] = Scope.ADMIN
    parser_classes = (BoundedJSON,)
    throttle_classes: tuple[type[BaseThrottle], ...] = (PerPerson,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Who asks, how much, and that what stands in the address is text."""
        super().initial(request, *args, **kwargs)
        _check_scope(request.auth, Scope.READ if request.method in SAFE_METHODS else self.writes)
        for name, value in request.query_params.items():
            if "\0" in f"{name}{value}":
                raise ValidationError({name.replace("\0", ""): [_("The character NUL is not text.")]})
        if request.method in etags.CHANGES and (wanted := request.headers.get("If-Match")):
            etags.require_unchanged(wanted, self._now(request, *args, **kwargs))

    def _now(self, request: Request, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """What this address answers to whoever looks. Raises NotFound for one that cannot be looked at."""
        look = getattr(self, "get", None)
        if look is None:
            raise NotFound(_("What stands at this address cannot be looked at, so it has no mark to go by."))
        return look(request, *args, **kwargs).data


def _check_scope(token: object, needed: Scope) -> None:
    """Raises MissingScope. Who is signed in otherwise than by a token needs none."""
    if isinstance(token, ApiToken) and not token.allows(needed):
        raise MissingScope(needed)


class Nothing(View):
    """Addresses that do not exist answer as problems too."""

    schema = None
    writes = Scope.READ

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Refuse, whatever the verb."""
        super().initial(request, *args, **kwargs)
        raise NotFound(_("There is nothing at this address; the addresses are listed at /api/v1/schema."))


class Paging(CursorPagination):
    """Pages by cursor: `limit`, `cursor`; the answer's `next` is the address of the next page."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 200
    ordering: tuple[str, ...] = ("-submitted_at", "-id")

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """As the rest of the document says that something may be null: in the words of JSON Schema."""
        address = {"type": ["string", "null"], "format": "uri"}
        properties = {"next": address, "previous": address, "results": schema}
        return {"type": "object", "required": ["next", "previous", "results"], "properties": properties}


def person(request: Request) -> User:
    """Who asks."""
    assert isinstance(request.user, User)  # noqa: S101  (the permission lets nobody else through)
    return request.user


def told(serializer: BaseSerializer[Any], status: int = 200) -> Response:
    """An answer of this serializer's data."""
    return Response(serializer.data, status=status)


def checked(serializer: Serializer[Any]) -> dict[str, Any]:
    """What was sent, once it is right. Raises ValidationError, also for fields that do not exist."""
    unknown = set(serializer.initial_data) - set(serializer.fields)
    if unknown:
        raise ValidationError({name: [_("There is no such field.")] for name in sorted(unknown)})
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
