"""Lists that are usually short, as JSON arrays: bounded, with the next part in the header `Link` (RFC 8288)."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from hekla.api.queries import own_parameters

MAX_ITEMS = 1000
_LAST = 2**31 - 1


class ArrayQuery(serializers.Serializer[Any]):
    """The part of a list. The header `Link` of a part has the address of the next one."""

    limit = serializers.IntegerField(
        min_value=1, max_value=MAX_ITEMS, default=MAX_ITEMS, help_text="maximum number of results"
    )
    offset = serializers.IntegerField(min_value=0, max_value=_LAST, default=0, help_text="results to skip")


class ArrayPages(BasePagination):
    """Divides a list into parts."""

    def paginate_queryset(
        self,
        queryset: QuerySet[Any] | Sequence[Any],
        request: Request,
        view: Any = None,  # noqa: ANN401, ARG002
    ) -> list[Any]:
        """The rows of the part that the request asks for. Raises ValidationError."""
        query = own_parameters(ArrayQuery, request.query_params)
        self._request, self._next = request, query["offset"] + query["limit"]
        found = list(queryset[query["offset"] : self._next + 1])
        self._has_next = len(found) > query["limit"]
        return found[: query["limit"]]

    def get_paginated_response(self, data: Any) -> Response:  # noqa: ANN401
        """The response with this part."""
        if not self._has_next:
            return Response(data)
        address = replace_query_param(self._request.build_absolute_uri(), "offset", self._next)
        return Response(data, headers={"Link": f'<{address}>; rel="next"'})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A bounded array."""
        return {**schema, "maxItems": MAX_ITEMS}


def array(
    request: Request, rows: QuerySet[Any] | Sequence[Any], serializer: type[serializers.Serializer[Any]]
) -> Response:
    """A response with the part of these rows that the request asks for."""
    pages = ArrayPages()
    return pages.get_paginated_response(serializer(pages.paginate_queryset(rows, request), many=True).data)
