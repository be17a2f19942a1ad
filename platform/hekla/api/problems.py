"""All errors of the API in one shape (RFC 9457, `application/problem+json`), from Hekla, Django or DRF."""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import exceptions, serializers
from rest_framework.response import Response
from rest_framework.views import exception_handler

from hekla.api.renderers import ApiRenderer
from hekla.domain.errors import Forbidden, HeklaError, Invalid, NotFound, Problem, Refused

_STATUS = ((Invalid, 400), (Forbidden, 403), (Refused, 409), (NotFound, 404))


class WrongFieldSerializer(serializers.Serializer[Any]):
    """A wrong field of a request."""

    path = serializers.CharField(help_text="for example tasks.0.replicas; empty: the request as a whole")
    message = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """An error (RFC 9457), with sentences in the language of `Accept-Language`."""

    type = serializers.CharField()
    title = serializers.CharField(help_text="phrase of the status code")
    status = serializers.IntegerField(min_value=400, max_value=599)
    detail = serializers.CharField(min_length=1)
    code = serializers.CharField(min_length=1, help_text="for programs")
    errors = WrongFieldSerializer(many=True, required=False)  # type: ignore[assignment]


class ProblemRenderer(ApiRenderer):
    """Renders JSON with the media type of problems."""

    media_type = "application/problem+json"


class TooLarge(exceptions.APIException):
    """The request body exceeds the limit."""

    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """The response to an exception of a view; None for an unexpected one, which becomes a 500."""
    if isinstance(error, HeklaError):
        return _problem_response(context, _status(error), error.code, _detail(error), _problems(error))
    answer = exception_handler(error, context)
    if answer is None:
        return None
    code, detail, problems = _describe(error)
    response = _problem_response(context, answer.status_code, code, detail, problems)
    for name in ("WWW-Authenticate", "Retry-After", "Allow"):
        if name in answer.headers:
            response[name] = answer.headers[name]
    return response


def _problem_response(
    context: dict[str, Any], status: int, code: str, detail: str, problems: Iterable[Problem]
) -> Response:
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    errors = [{"path": problem.path, "message": problem.message} for problem in problems]
    if errors:
        body["errors"] = errors
    if request := context.get("request"):
        request.accepted_renderer = ProblemRenderer()
        request.accepted_media_type = ProblemRenderer.media_type
    return Response(body, status=status, content_type=ProblemRenderer.media_type)


def _status(error: HeklaError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 400)


def _detail(error: HeklaError) -> str:
    if not isinstance(error, Invalid):
        return error.message
    first = error.problems[0]
    if len(error.problems) == 1:
        return f"{first.path}: {first.message}" if first.path else first.message
    return _("The request has %(count)d errors. See “errors”.") % {"count": len(error.problems)}


def _problems(error: HeklaError) -> Iterable[Problem]:
    if isinstance(error, Invalid):
        return error.problems
    return [Problem(error.path, error.message)] if isinstance(error, Refused) and error.path else []


def _describe(error: Exception) -> tuple[str, str, list[Problem]]:
    """Code, message and wrong fields of an exception of Django or DRF."""
    if isinstance(error, Http404):
        return "not_found", _("Not found, or no permission."), []
    if isinstance(error, PermissionDenied):
        return "forbidden", str(error) or _("Permission denied."), []
    if isinstance(error, exceptions.ValidationError):
        problems = flattened(error)
        return Invalid.code, _detail(Invalid(problems)), problems
    assert isinstance(error, exceptions.APIException)  # noqa: S101  (the handler returns None for others)
    return str(error.get_codes()), str(error.detail), []


def flattened(error: exceptions.ValidationError) -> list[Problem]:
    """The problems of a validation error, one per message, with the path of the field."""
    return list(_flat(error.detail, ""))


def _flat(detail: object, path: str) -> Iterator[Problem]:
    if isinstance(detail, dict):
        for name, inner in detail.items():
            outer = "" if name == "non_field_errors" else str(name)
            yield from _flat(inner, ".".join(filter(None, (path, outer))))
    elif isinstance(detail, list):
        for inner in detail:
            yield from _flat(inner, path)
    else:
        yield Problem(path, str(detail))
