"""The OpenAPI description of an operation: what every endpoint of the API has in common.

The views describe their own requests and results. Added here: the errors that any endpoint can answer with, the headers
for conditional requests, and that a request document has no other fields than the described ones.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS

from hekla.api.arrays import MAX_ITEMS, ArrayQuery
from hekla.api.documents import refuse_reserved
from hekla.api.preconditions import CHANGES
from hekla.api.problems import ProblemRenderer, ProblemSerializer
from hekla.api.queries import PageQuery
from hekla.apps.forms import RESERVED

_STRING = {"type": "string"}
TEXT = {"type": "string", "minLength": 1, "pattern": r"\S"}
"""A text with a visible character."""
_ETAG = {"ETag": {"schema": _STRING, "required": True, "description": "for If-None-Match and If-Match"}}
_LINK = {"Link": {"schema": _STRING, "description": "address of the next part (rel=next), if there is one"}}
_ERROR_HEADERS: dict[HTTPStatus, dict[str, Any]] = {
    HTTPStatus.METHOD_NOT_ALLOWED: {
        "Allow": {"schema": _STRING, "required": True, "description": "methods of this address"}
    },
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": {"schema": _STRING, "required": True}},
    HTTPStatus.TOO_MANY_REQUESTS: {
        "Retry-After": {
            "schema": {"type": "integer", "minimum": 0},
            "required": True,
            "description": "seconds to wait before the next request",
        }
    },
}
_ANY = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_ACCEPTABLE,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_MANY_REQUESTS,
)
"""Errors of every operation.

404: unknown rows in the address, the query or the document. 405: for other methods at its address. 409: the state
forbids it.
"""
_WITH_BODY = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


class ApiSchema(AutoSchema):
    """Describes an operation of the API."""

    view: Any  # an ApiView

    def get_override_parameters(self) -> list[Any]:
        """The query parameters of the view, and the header of conditional requests."""
        name, meaning = (
            ("If-Match", "ETag of the resource that you read; 412 if it has changed since")
            if self.method in CHANGES
            else ("If-None-Match", "ETag of an earlier response; 304 if nothing has changed")
        )
        header = OpenApiParameter(name, str, OpenApiParameter.HEADER, description=meaning)
        described = self.view.query_serializer() or (PageQuery if self._is_list_view() else None)
        queries = [described] if described and described().fields else []
        return queries if self.method == "POST" else [*queries, header]

    def _get_request_body(self, direction: Any = "request") -> Any:  # noqa: ANN401
        """The request body. Without one, a change changes nothing; but there is no empty JobSpec."""
        body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        is_document = self.method == "POST" and isinstance(self.get_request_serializer(), dict)
        return {**body, "required": True} if body and is_document else body

    def _get_response_bodies(self, direction: Any = "response") -> Any:  # noqa: ANN401
        """The results of the view, and the errors."""
        found = super()._get_response_bodies(direction)
        if self.method in SAFE_METHODS:
            headers = {**_ETAG, **_LINK} if self._is_array() else _ETAG
            found = {code: {**result, "headers": headers} for code, result in found.items()}
            found["304"] = {"description": "Not changed", "headers": _ETAG}
        return {**found, **{str(status.value): self._error(status) for status in self._errors()}}

    def _get_filter_parameters(self) -> Any:  # noqa: ANN401
        """The filters of a list. An empty one is refused: it would have no effect."""
        found = super()._get_filter_parameters()  # type: ignore[no-untyped-call]
        for parameter in found:
            if parameter["schema"] == {"type": "string"}:
                parameter["schema"] = {**TEXT}
        return found

    def _is_array(self) -> bool:
        described = self.view.query_serializer()
        return described is not None and issubclass(described, ArrayQuery)

    def _get_response_for_code(self, *args: Any, **more: Any) -> Any:  # noqa: ANN401
        """A response. Arrays are bounded."""
        found = super()._get_response_for_code(*args, **more)  # type: ignore[no-untyped-call]
        for content in found.get("content", {}).values():
            if content["schema"].get("type") == "array":
                content["schema"] = {**content["schema"], "maxItems": MAX_ITEMS}
        return found

    def _errors(self) -> Iterator[HTTPStatus]:
        yield from _ANY
        if self.method in CHANGES:
            yield HTTPStatus.PRECONDITION_FAILED
        if self._get_request_body():
            yield from _WITH_BODY

    def _error(self, status: HTTPStatus) -> dict[str, Any]:
        media_type = ProblemRenderer.media_type
        found = self._get_response_for_code(ProblemSerializer, str(status.value), media_types=[media_type])
        headers = _ERROR_HEADERS.get(status)
        return {**found, "description": status.phrase, **({"headers": headers} if headers else {})}

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:  # noqa: ANN401
        """The schema of a document. Requests have no other fields: `views.validated` refuses them.

        A serializer says in `rules` which fields need each other, as keywords of JSON Schema.
        """
        found = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if direction != "request":
            return found
        return {**found, "additionalProperties": False, **getattr(serializer, "rules", {})}

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: Any = False) -> Any:  # noqa: ANN401
        """The schema of a field. A text that must not be blank has a visible character; some names are reserved."""
        found = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        is_text = direction == "request" and isinstance(field, serializers.CharField)
        has_form = any(isinstance(one, RegexValidator) for one in field.validators)
        is_free = found.get("type") == "string" and not has_form and not {"pattern", "format"} & found.keys()
        if is_text and is_free and not field.allow_blank and field.trim_whitespace:
            found = {**found, "pattern": r"\S"}
        if refuse_reserved in field.validators:
            found = {**found, "not": {"enum": sorted(RESERVED)}}
        return found
