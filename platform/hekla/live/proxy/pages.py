"""The few pages that the proxy itself shows on the origin of a session. They have no scripts and load nothing."""

from collections.abc import Awaitable, Callable, Sequence
from html import escape
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from hekla.apps.sentences import translated
from hekla.live.proxy.headers import Header, one

Send = Callable[[dict[str, Any]], Awaitable[None]]
_HEADERS: Sequence[Header] = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
)
_PAGE = """<!doctype html><html lang="{language}"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;
padding:0 1.25rem}}h1{{font-size:1.25rem}}
button{{font:inherit;padding:.5rem 1rem}}</style><h1>{title}</h1><p>{text}</p><p>{links}</p></html>"""


async def closed(headers: Sequence[Header], send: Send) -> None:
    """There is no way in without a ticket: the session is unknown or has ended, or its visitor has no right to it."""
    with _language_of(headers):
        title = _("Open this session from the console.")
        text = _("It has ended, or this browser has not opened it, or you signed out meanwhile.")
        await _send(send, HTTPStatus.FORBIDDEN, title, text, _link("/jobs/", _("Open the list of jobs")))


async def confirm(headers: Sequence[Header], send: Send) -> None:
    """A browser comes with a ticket to a host that sessions share: the person says whether they want that."""
    with _language_of(headers):
        title = _("Open this session?")
        text = _(
            "Go on only if you have just chosen to open it in the console: it ends another session that this browser "
            "has open. If any other page led you here, close this one."
        )
        button = f'<form method="post"><button>{escape(_("Open now"))}</button></form>'
        own = (b"referrer-policy", b"same-origin")  # without one, browsers would name no origin in what the form sends
        await _send(send, HTTPStatus.OK, title, text, button, own)


async def foreign(headers: Sequence[Header], send: Send) -> None:
    """Another site made the request."""
    with _language_of(headers):
        title, text = _("Refused."), _("Another site sent this request.")
        await _send(send, HTTPStatus.FORBIDDEN, title, text)


async def no_worker(headers: Sequence[Header], send: Send) -> None:
    """A page asked for a service worker on a host that sessions share."""
    with _language_of(headers):
        text = _("Sessions of this console share one host. No page may install a service worker there.")
        await _send(send, HTTPStatus.FORBIDDEN, _("Refused."), text)


async def outside(headers: Sequence[Header], send: Send) -> None:
    """The path on a shared host is none of a session."""
    with _language_of(headers):
        title = _("No session is at this address.")
        text = _(
            "Each session of this console is below a path of this host. If a page of a session led here, its program "
            "does not work below a path."
        )
        await _send(send, HTTPStatus.NOT_FOUND, title, text, _link("/jobs/", _("Open the list of jobs")))


async def not_understood(headers: Sequence[Header], send: Send) -> None:
    """The request cannot be passed on."""
    with _language_of(headers):
        await _send(send, HTTPStatus.BAD_REQUEST, _("Refused."), _("This request cannot be passed on to the pod."))


async def too_many(headers: Sequence[Header], send: Send, most: int) -> None:
    """So many requests and websockets are open that the session gets no more now."""
    with _language_of(headers):
        title = _("This session has too many open requests.")
        text = _("At most %(n)d are open at once. Close some of its pages, or wait for its downloads.") % {"n": most}
        await _send(send, HTTPStatus.TOO_MANY_REQUESTS, title, text, _again(), (b"retry-after", b"5"))


async def unavailable(headers: Sequence[Header], send: Send) -> None:
    """The rights cannot be looked up now."""
    with _language_of(headers):
        title, text = _("The console cannot check your permission now."), _("Try again in a moment.")
        await _send(send, HTTPStatus.SERVICE_UNAVAILABLE, title, text, _again())


async def no_answer(headers: Sequence[Header], send: Send, port: int, reason: str) -> None:
    """No server answers in the pod. `reason`: in English."""
    with _language_of(headers):
        title = _("Nothing answers on port %(port)d of the pod.") % {"port": port}
        text = _(
            "The program may still be starting, or it listens on another port or address. On a local cluster it must "
            "listen on the address in HEKLA_POD_ADDRESS, or on all addresses."
        )
        await _send(send, HTTPStatus.BAD_GATEWAY, title, f"{text} ({translated(reason)})", _again())


async def redirect(send: Send, place: str, *more: Header) -> None:
    """Send the browser to a path of this origin, with more headers."""
    headers = [*_HEADERS, (b"location", place.encode()), *more]
    await send({"type": "http.response.start", "status": HTTPStatus.SEE_OTHER.value, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _send(send: Send, status: HTTPStatus, title: str, text: str, links: str = "", *more: Header) -> None:
    language = translation.get_language() or settings.LANGUAGE_CODE
    page = _PAGE.format(language=language, title=escape(title), text=escape(text), links=links).encode()
    standard = (one for one in _HEADERS if one[0] not in dict(more))
    headers = [*standard, *more, (b"content-length", str(len(page)).encode())]
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": page})


def _language_of(headers: Sequence[Header]) -> translation.override:
    accepted = one(headers, b"accept-language")[:20].lower()
    return translation.override("zh-hans" if accepted.startswith(b"zh") else settings.LANGUAGE_CODE)


def _link(path: str, text: str) -> str:
    return f'<a href="{escape(settings.PUBLIC_URL.rstrip("/") + path)}">{escape(text)}</a>'


def _again() -> str:
    return f'<a href="">{escape(_("Try again"))}</a>'
