"""The response to a request beyond the bounds: 429 with `Retry-After`, without a thread and the database."""

import json
from functools import cache
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.cookie import parse_cookie
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _

from hekla.pages.admission.callers import Scope, headers_of

RETRY_AFTER_SECONDS = 1
_STATUS = HTTPStatus.TOO_MANY_REQUESTS


async def refuse(scope: Scope, send: Any) -> None:  # noqa: ANN401  (an ASGI function)
    """Send the response that fits the address: a problem, an error of OpenPAI, or a page."""
    media_type, body = _answer(_kind(scope["path"]), _language(scope))
    headers = [
        (b"content-type", media_type.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", str(RETRY_AFTER_SECONDS).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": _STATUS.value, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _kind(path: str) -> str:
    return next((kind for kind in ("api", "rest-server") if path.startswith(f"/{kind}/")), "page")


@cache
def _answer(kind: str, language: str) -> tuple[str, bytes]:
    """The media type and the body. They depend on nothing else, so each is made once."""
    with translation.override(language):
        if kind == "page":
            return "text/html; charset=utf-8", render_to_string("429.html").encode()
        detail = _("You have too many requests at once. Wait for the running ones, then try again.")
        if kind == "rest-server":
            return "application/json", json.dumps({"code": "TooManyRequestsError", "message": detail}).encode()
    problem = {"type": "about:blank", "title": _STATUS.phrase, "status": _STATUS, "detail": detail, "code": "throttled"}
    return "application/problem+json", json.dumps(problem).encode()


def _language(scope: Scope) -> str:
    """The language that Django would choose."""
    headers, request = headers_of(scope), HttpRequest()
    request.COOKIES = parse_cookie(headers.get("cookie", ""))
    request.META["HTTP_ACCEPT_LANGUAGE"] = headers.get("accept-language", "")
    request.path_info = scope["path"]
    return translation.get_language_from_request(request) or settings.LANGUAGE_CODE
