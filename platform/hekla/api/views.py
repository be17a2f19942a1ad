"""What all addresses have in common: who asks, how much, and in which form."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer
from rest_framework.views import APIView

from hekla.api.parsers import BoundedJSON
from hekla.api.throttles import PerPerson
from hekla.apps.accounts.models import User
from hekla.domain.errors import NotFound


class View(APIView):
    """An address of the API: signed in, counted, JSON."""

    parser_classes = (BoundedJSON,)
    throttle_classes = (PerPerson,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Who asks, how much, and that what stands in the address is text."""
        super().initial(request, *args, **kwargs)
        for name, value in request.query_params.items():
            if "\0" in f"{name}{value}":
                raise ValidationError({name.replace("\0", ""): [_("The character NUL is not text.")]})


class Nothing(View):
    """Addresses that do not exist answer as problems too."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Refuse, whatever the verb."""
        super().initial(request, *args, **kwargs)
        raise NotFound(_("There is nothing at this address; the addresses are listed at /api/v1/schema."))


class Paging(CursorPagination):
    """Pages by cursor: `limit`, `cursor`; the answer's `next` is the address of the next page."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 200
    ordering = ("-submitted_at", "-id")


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
