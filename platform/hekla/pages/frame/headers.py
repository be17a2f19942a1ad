"""Headers of all answers: what browsers and proxies may keep, and what pages may use.

Static files have their own `Cache-Control`, and some views a stricter one. The others are private: a shared cache
must not keep them, and after a sign-out the Back button must not show them.
"""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

PAGES = "private, no-store"
API = "private, no-cache"
"""Programs may keep an answer of the API, to ask with its ETag whether it is still true."""
_NOTHING = (
    *("accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "magnetometer", "microphone"),
    *("midi", "payment", "serial", "usb", "hid"),
)
_OURS = ("publickey-credentials-create", "publickey-credentials-get", "clipboard-write")
PERMISSIONS = ", ".join([*(f"{name}=()" for name in _NOTHING), *(f"{name}=(self)" for name in _OURS)])

_Respond = Callable[[HttpRequest], HttpResponseBase]
_RespondLater = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def add_headers(get_response: _Respond | _RespondLater) -> _Respond | _RespondLater:
    """Middleware that adds the headers which a response does not have yet. It comes first, so errors have them too."""
    if iscoroutinefunction(get_response):

        async def respond_later(request: HttpRequest) -> HttpResponseBase:
            response: HttpResponseBase = await get_response(request)
            return _complete(request, response)

        return respond_later

    def respond(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        assert isinstance(response, HttpResponseBase)  # noqa: S101  (a synchronous function gives no awaitable)
        return _complete(request, response)

    return respond


def _complete(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Cache-Control", API if request.path.startswith("/api/") else PAGES)
    response.headers.setdefault("Permissions-Policy", PERMISSIONS)
    if settings.HSTS_SECONDS:
        response.headers.setdefault("Strict-Transport-Security", f"max-age={settings.HSTS_SECONDS}")
    return response
