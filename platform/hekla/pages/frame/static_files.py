"""Static files: their version in the address, the two bundles, and compression.

Browsers keep an address with its version for ever: /static/VERSION/bundles/console.css. A page of today and one that is
still open from before an upgrade may ask for different versions, and so may both ask a host that is not upgraded yet.
Each host answers with the files that it has; only its own version is kept.

Text is compressed once and answered from memory, so nothing has to be built before the start and no built file can be
stale. With DEBUG, each request reads the sources again. Fonts, images, and files of packages are left to ServeStatic.
"""

import gzip
import re
from asyncio import to_thread
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.decorators import sync_and_async_middleware

from hekla.lib import bundles
from hekla.lib.checkout import CHECKOUT

FOR_EVER = "max-age=31536000, public, immutable"
_REVALIDATED = "no-cache"
_BRIEF = "max-age=60, public"
_VERSIONED = re.compile(rf"{settings.SERVESTATIC_STATIC_PREFIX}([0-9a-f]{{12}})/")
_STATIC = CHECKOUT / "static"
_BUNDLES: dict[str, Callable[[], str]] = {
    "bundles/console.css": partial(bundles.style_sheet, _STATIC / "css" / "console.css"),
    "bundles/console.js": partial(bundles.script, _STATIC),
}
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

_Respond = Callable[[HttpRequest], HttpResponseBase]
_RespondLater = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@dataclass(frozen=True, slots=True)
class _Asset:
    """A text file. `packed`: its content as gzip; `mark`: its entity tag."""

    packed: bytes
    mark: str
    media_type: str


@sync_and_async_middleware
def versioned_static_files(get_response: _Respond | _RespondLater) -> _Respond | _RespondLater:
    """Middleware above that of other static files, which knows no versions."""
    if iscoroutinefunction(get_response):

        async def respond_later(request: HttpRequest) -> HttpResponseBase:
            version = _remove_version(request)
            name = _text_name(request)
            response: HttpResponseBase = await to_thread(_text, request, name) if name else await get_response(request)
            return _complete(response, version)

        return respond_later

    def respond(request: HttpRequest) -> HttpResponseBase:
        version = _remove_version(request)
        name = _text_name(request)
        response = _text(request, name) if name else get_response(request)
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


def _text_name(request: HttpRequest) -> str:
    """The name of the bundle or text file that the request asks for; empty if it asks for something else."""
    if request.method not in ("GET", "HEAD") or not request.path_info.startswith(settings.SERVESTATIC_STATIC_PREFIX):
        return ""
    name = request.path_info.removeprefix(settings.SERVESTATIC_STATIC_PREFIX)
    return name if name in _BUNDLES or name in _text_files() else ""


def _text(request: HttpRequest, name: str) -> HttpResponseBase:
    asset = _read(name) if settings.DEBUG else _read_once(name)
    is_packed = re.search(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))", request.headers.get("Accept-Encoding", ""))
    body = asset.packed if is_packed else gzip.decompress(asset.packed)
    headers = {
        "Cache-Control": _REVALIDATED if settings.DEBUG else _BRIEF,
        "Vary": "Accept-Encoding",
        "ETag": asset.mark,
    }
    response = HttpResponse(body, content_type=asset.media_type, headers=headers)
    if is_packed:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Access-Control-Allow-Origin"] = "*"  # as ServeStatic does: the files are no secret
    return get_conditional_response(request, etag=asset.mark, response=response) or response


def _read(name: str) -> _Asset:
    text = _BUNDLES[name]().encode() if name in _BUNDLES else (_STATIC / name).read_bytes()
    mark = f'W/"{sha256(text).hexdigest()[:16]}"'
    return _Asset(gzip.compress(text, mtime=0), mark, _TYPES[Path(name).suffix])


_read_once = cache(_read)
"""At most one entry for each text file and bundle: other names do not arrive here."""


def _text_files() -> frozenset[str]:
    return _list_text_files() if settings.DEBUG else _text_files_once()


def _list_text_files() -> frozenset[str]:
    found = (path for path in _STATIC.rglob("*") if path.suffix in _TYPES and path.is_file())
    return frozenset(path.relative_to(_STATIC).as_posix() for path in found)


_text_files_once = cache(_list_text_files)
