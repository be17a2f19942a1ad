"""Conditional changes: a change with `If-Match` is refused if the resource has changed since the client read it.

Not beside the ETags themselves: their middleware is a part of every process, which starts without REST framework.
"""

from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from django.utils.cache import set_response_etag
from django.utils.http import parse_etags
from django.utils.translation import gettext_lazy as _
from rest_framework.exceptions import APIException

from hekla.api.renderers import ApiRenderer

CHANGES = frozenset({"PUT", "PATCH", "DELETE"})


class PreconditionFailed(APIException):
    """The resource has changed since the client read it."""

    status_code = HTTPStatus.PRECONDITION_FAILED
    default_code = "changed_meanwhile"
    default_detail = _("The resource has changed since you read it (If-Match). Read it again and resend your changes.")


def require_unchanged(wanted: str, data: Any) -> None:  # noqa: ANN401  (the data of any response)
    """Raise PreconditionFailed if the ETag of `data`, the present response, is not in `wanted` (`If-Match`).

    Weak ETags match too: compression on the way makes an ETag weak, for the same response.
    """
    answer = set_response_etag(HttpResponse(ApiRenderer().render(data)))
    if not {"*", answer["ETag"]} & {mark.removeprefix("W/") for mark in parse_etags(wanted)}:
        raise PreconditionFailed
