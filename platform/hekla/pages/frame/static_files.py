"""Addresses of static files with their version, which browsers keep for ever: /static/VERSION/css/base.css.

A page of today and one that is still open from before an upgrade may ask for different versions, and so may both ask a
host that is not upgraded yet. Each host answers with the files that it has; only its own version is kept.
"""

import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

FOR_EVER = "max-age=31536000, public, immutable"
_REVALIDATED = "no-cache"
_VERSIONED = re.compile(rf"{settings.SERVESTATIC_STATIC_PREFIX}([0-9a-f]{{12}})/")

_Respond = Callable[[HttpRequest], HttpResponseBase]
_RespondLater = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def versioned_static_files(get_response: _Respond | _RespondLater) -> _Respond | _RespondLater:
    """Middleware above that of static files, which knows no versions."""
    if iscoroutinefunction(get_response):

        async def respond_later(request: HttpRequest) -> HttpResponseBase:
            version = _remove_version(request)
            response: HttpResponseBase = await get_response(request)
            return _complete(response, version)

        return respond_later

    def respond(request: HttpRequest) -> HttpResponseBase:
        version = _remove_version(request)
        response = get_response(request)
        assert isinstance(response, HttpResponseBase)  # noqa: S101  (a synchronous function gives no awaitable)
        return _complete(response, version)

    return respond


def _remove_version(request: HttpRequest) -> str:
    """The version in the address, which is removed from its path; empty without one."""
    match = _VERSIONED.match(request.path_info)
    if match is None:
        return ""
    request.path_info = f"{settings.SERVESTATIC_STATIC_PREFIX}{request.path_info[match.end() :]}"
    return match[1]


def _complete(response: HttpResponseBase, version: str) -> HttpResponseBase:
    if version and response.status_code in (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED, HTTPStatus.PARTIAL_CONTENT):
        response.headers["Cache-Control"] = FOR_EVER if version == settings.STATIC_VERSION else _REVALIDATED
    return response
