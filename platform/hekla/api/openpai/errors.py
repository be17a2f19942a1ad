"""Errors in OpenPAI's form: `{"code": "NoJobError", "message": …}`."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler

from hekla.api.renderers import ApiRenderer
from hekla.apps.jobs.services.submission import JobNameConflict
from hekla.domain.errors import Forbidden, HeklaError, Invalid, NotFound, Refused


class OpenpaiError(HeklaError):
    """An error with an HTTP status and an OpenPAI error code."""

    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def no_job(name: str) -> OpenpaiError:
    """The error for a job that does not exist, or that the person cannot see."""
    return OpenpaiError(HTTPStatus.NOT_FOUND, "NoJobError", _("Job %(name)s not found.") % {"name": name[:400]})


def wrong_parameter(message: str) -> OpenpaiError:
    """The error for a wrong parameter in the URL or in a small body."""
    return OpenpaiError(HTTPStatus.BAD_REQUEST, "InvalidParametersError", message)


_CODES: tuple[tuple[type[Exception], HTTPStatus, str], ...] = (
    (JobNameConflict, HTTPStatus.CONFLICT, "ConflictJobError"),
    (Forbidden, HTTPStatus.FORBIDDEN, "ForbiddenUserError"),
    (Refused, HTTPStatus.CONFLICT, "ConflictJobError"),
    (NotFound, HTTPStatus.NOT_FOUND, "NoJobError"),
    (Invalid, HTTPStatus.BAD_REQUEST, "InvalidProtocolError"),
)
_BY_STATUS = {
    HTTPStatus.BAD_REQUEST: "InvalidParametersError",
    HTTPStatus.UNAUTHORIZED: "UnauthorizedUserError",
    HTTPStatus.FORBIDDEN: "ForbiddenUserError",
    HTTPStatus.NOT_FOUND: "NoApiError",
    HTTPStatus.METHOD_NOT_ALLOWED: "NoApiError",
    HTTPStatus.TOO_MANY_REQUESTS: "TooManyRequestsError",
}


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """The response to an exception of a view; None for an unexpected one, which becomes a 500."""
    if isinstance(error, OpenpaiError):
        return _error_response(context, error.status, error.code, error.message)
    if isinstance(error, Refused) and error.path == "queue":
        return _error_response(context, HTTPStatus.BAD_REQUEST, "NoVirtualClusterError", error.message)
    for kind, status, code in _CODES:
        if isinstance(error, kind):
            assert isinstance(error, HeklaError)  # noqa: S101  (all classes in `_CODES` are)
            return _error_response(context, status, code, error.message)
    answer = exception_handler(error, context)
    if answer is None:
        return None
    response = _error_response(
        context, answer.status_code, _BY_STATUS.get(HTTPStatus(answer.status_code), "UnknownError"), _describe(error)
    )
    for name in ("WWW-Authenticate", "Retry-After", "Allow"):
        if name in answer.headers:
            response[name] = answer.headers[name]
    return response


def _error_response(context: dict[str, Any], status: int, code: str, message: str) -> Response:
    if request := context.get("request"):
        request.accepted_renderer = ApiRenderer()
        request.accepted_media_type = ApiRenderer.media_type
    return Response({"code": code, "message": message}, status=status)


def _describe(error: Exception) -> str:
    if isinstance(error, Http404):
        return _("Not found.")
    if isinstance(error, PermissionDenied):
        return str(error) or _("Permission denied.")
    if isinstance(error, exceptions.ValidationError):
        return "; ".join(_flat(error.detail, ""))
    assert isinstance(error, exceptions.APIException)  # noqa: S101  (the handler returns None for others)
    return str(error.detail)


def _flat(detail: object, path: str) -> Iterator[str]:
    if isinstance(detail, dict):
        for name, inner in detail.items():
            yield from _flat(inner, str(name))
    elif isinstance(detail, list):
        for inner in detail:
            yield from _flat(inner, path)
    else:
        yield f"{path}: {detail}"
