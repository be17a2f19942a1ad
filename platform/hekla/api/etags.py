"""What was seen has a mark (`ETag`): it is not sent twice, and a change can be meant for what was seen only.

A mark is made from the text of the answer. `If-None-Match` is answered with 304 where the answer would be the same;
`If-Match` lets a change through only while the address still answers what its sender has seen.
"""

from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from django.http.request import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.http import ConditionalGetMiddleware
from django.utils.cache import set_response_etag
from django.utils.http import parse_etags
from django.utils.translation import gettext_lazy as _
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer

CHANGES = frozenset({"PUT", "PATCH", "DELETE"})


class PreconditionFailed(APIException):
    """The address answers something else by now."""

    status_code = HTTPStatus.PRECONDITION_FAILED
    default_code = "changed_meanwhile"
    default_detail = _("The resource has changed since you read it (If-Match). Read it again and resend your changes.")


class ETagMiddleware(ConditionalGetMiddleware):
    """Marks for the answers of the API; pages differ each time they are made."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Mark it, and send nothing where the same was seen."""
        return super().process_response(request, response) if request.path.startswith("/api/") else response


def require_unchanged(wanted: str, data: Any) -> None:  # noqa: ANN401  (whatever an address answers)
    """Refuse where what the address answers (`data`) is none of what `If-Match` names. Raises PreconditionFailed.

    An answer that was compressed on its way had its mark made a weak one; it is of the same answer.
    """
    answer = set_response_etag(HttpResponse(JSONRenderer().render(data)))
    if not {"*", answer["ETag"]} & {mark.removeprefix("W/") for mark in parse_etags(wanted)}:
        raise PreconditionFailed
