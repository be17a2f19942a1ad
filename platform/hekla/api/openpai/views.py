"""Base classes and helpers of the OpenPAI views."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, cast

from django.http import QueryDict
from django.utils.translation import gettext as _
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.openpai import errors
from hekla.api.parsers import BoundedJSONParser, ManifestParser, read_bounded
from hekla.api.views import ApiView, person
from hekla.apps.accounts.models import User
from hekla.apps.accounts.scopes import Scope
from hekla.apps.jobs.models import Job
from hekla.apps.openpai import selectors
from hekla.domain.errors import NotFound


class OpenpaiView(ApiView):
    """An OpenPAI endpoint: signed in, throttled, JSON, with OpenPAI's errors. Not in Hekla's OpenAPI schema."""

    writes = Scope.JOBS
    schema = None

    def query_serializer(self) -> None:
        """The views check their query parameters. OpenPAI's clients send some without effect, so none is unknown."""

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        """The handler that returns OpenPAI's errors."""
        return errors.handle


class AnyTextParser(ManifestParser):
    """Accepts a body of any media type as YAML."""

    media_type = "*/*"


class BoundedFormParser(BaseParser):
    """Parses a form, as browsers and `curl -d` send it."""

    media_type = "application/x-www-form-urlencoded"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> QueryDict:  # noqa: ANN401, ARG002
        """The fields. Raises TooLarge."""
        return QueryDict(read_bounded(stream, parser_context))


class UnknownOpenpaiAddressView(OpenpaiView):
    """Answers unknown URLs, and OpenPAI's URLs that Hekla does not support."""

    writes = Scope.READ

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Raises NoApiError for every method."""
        super().initial(request, *args, **kwargs)
        message = _("API %(address)s is not found.") % {"address": request.path[:300]}
        raise errors.OpenpaiError(HTTPStatus.NOT_FOUND, "NoApiError", message)


def split_job_name(user: User, where: dict[str, str]) -> tuple[str, str]:
    """Owner and name of the job in a URL: `user~name`, or two parts; without an owner, the person's own job."""
    if "user" in where:
        return where["user"], where["name"]
    owner, tilde, name = where["job"].partition("~")
    return (owner, name) if tilde else (user.username, owner)


def job_at(request: Request, where: dict[str, str]) -> Job:
    """The job of the URL. Raises OpenpaiError."""
    user = person(request)
    owner, name = split_job_name(user, where)
    try:
        return selectors.get(owner, name, user)
    except NotFound as error:
        raise errors.no_job(f"{owner}~{name}") from error


def request_body(request: Request) -> Mapping[str, Any]:
    """The fields of the parsed body."""
    return cast("Mapping[str, Any]", request.data)


def message_response(message: str, status: int = HTTPStatus.ACCEPTED, **more: Any) -> Response:  # noqa: ANN401
    """OpenPAI's response to an action."""
    return Response({"status": status, "message": message, **more}, status=status)


JSON_OR_TEXT = (BoundedJSONParser, AnyTextParser)
JSON_OR_FORM = (BoundedJSONParser, BoundedFormParser)
