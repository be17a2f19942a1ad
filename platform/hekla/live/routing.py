"""URLs of the websockets. Connections that no page makes are denied, with at most one short line in the log."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from channels.auth import AuthMiddleware
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import CookieMiddleware, SessionMiddleware
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import SessionBase
from django.urls import path, re_path

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.login_sessions import selectors as login_sessions
from hekla.lib import clock
from hekla.lib.late_imports import import_in_thread
from hekla.live.consumers import LogConsumer, PageConsumer
from hekla.live.terminals.consumer import TerminalConsumer

log = logging.getLogger(__name__)
Asgi = Callable[..., Awaitable[None]]


async def ssh(scope: Any, *messages: Any) -> None:  # noqa: ANN401  (receive, send)
    """An SSH connection. Its library takes a third of a second to import, so the first connection does that."""
    consumer = await import_in_thread("hekla.live.ssh.consumer")
    await consumer.SshConsumer.as_asgi()(scope, *messages)


urlpatterns = [  # Channels passes ASGI applications to `path`, which is typed for views
    path("ws/live/", PageConsumer.as_asgi()),  # type: ignore[arg-type]
    path("ws/logs/<int:pod_id>/", LogConsumer.as_asgi()),  # type: ignore[arg-type]
    path("ws/terminals/<int:pod_id>/", TerminalConsumer.as_asgi()),  # type: ignore[arg-type]
    path("ws/ssh/<str:host>/", ssh),  # type: ignore[arg-type]
]
_OF_TOKENS = "/ws/ssh/"


class Denied(AsyncWebsocketConsumer):
    """Denies a websocket."""

    async def connect(self) -> None:
        """Close before accepting: the browser gets a 403."""
        log.warning("websocket denied: %.200r", self.scope["path"])
        await self.close()


class OwnOrigin:
    """Denies pages of other sites, as Django does for forms: also those at another port of this host, say of pods.

    Channels itself compares only the names of hosts, and raises for an `Origin` that is no URL.
    """

    def __init__(self, application: Asgi) -> None:
        self._check, self._denied = AllowedHostsOriginValidator(application), Denied.as_asgi()

    async def __call__(self, scope: Any, *messages: Any) -> None:  # noqa: ANN401  (receive, send)
        """Serve the websocket, or deny it."""
        try:
            is_own = _is_own(dict(scope["headers"]))
        except ValueError:
            is_own = False
        await (self._check if is_own else self._denied)(scope, *messages)


def _is_own(headers: Mapping[bytes, bytes]) -> bool:
    """Whether `Origin` is the console's public URL, or the host and port of this request. Raises ValueError."""
    origin = urlsplit(headers.get(b"origin", b"").decode("latin1"))
    host, public = headers.get(b"host", b"").decode("latin1"), urlsplit(settings.PUBLIC_URL)
    found = _host_and_port(origin)
    return bool(origin.hostname) and (
        found == _host_and_port(urlsplit(f"{origin.scheme}://{host}"))
        or (origin.scheme == public.scheme and found == _host_and_port(public))
    )


def _host_and_port(url: SplitResult) -> tuple[str | None, int | None]:
    return url.hostname, url.port or {"http": 80, "https": 443}.get(url.scheme)


class SessionUser(AuthMiddleware):
    """Finds the person of a session, also of one that a former secret key signed. Channels itself would delete it."""

    async def resolve_scope(self, scope: Any) -> None:  # noqa: ANN401
        """Set the person."""
        scope["user"]._wrapped = await _user_of(scope["session"])


@database_sync_to_async
def _user_of(session: SessionBase) -> User | AnonymousUser:
    return (
        login_sessions.user_of({name: session.get(name) for name in (SESSION_KEY, HASH_SESSION_KEY)}) or AnonymousUser()
    )


class TokenUser:
    """Finds the person of a token (`Authorization: Bearer`), for clients that are no browsers. Sessions do not count.

    Pages of other sites cannot send this header, so their origin need not be checked; what names one is denied.
    """

    def __init__(self, application: Asgi) -> None:
        self._application, self._denied = application, Denied.as_asgi()

    async def __call__(self, scope: Any, *messages: Any) -> None:  # noqa: ANN401
        """Serve the websocket, or deny it."""
        headers = dict(scope["headers"])
        kind, _space, secret = headers.get(b"authorization", b"").decode("latin1").partition(" ")
        if b"origin" in headers or kind.lower() != "bearer":
            await self._denied(scope, *messages)
            return
        token = await database_sync_to_async(accounts.token_in_force)(secret.strip(), now=clock.now())
        user = token.user if token else AnonymousUser()
        await self._application({**scope, "user": user, "token": token}, *messages)


class ByAddress:
    """Pages have sessions and other clients have tokens, by the address."""

    def __init__(self, of_sessions: Asgi, of_tokens: Asgi) -> None:
        self._of_sessions, self._of_tokens = of_sessions, of_tokens

    async def __call__(self, scope: Any, *messages: Any) -> None:  # noqa: ANN401
        """Serve the websocket."""
        await (self._of_tokens if scope["path"].startswith(_OF_TOKENS) else self._of_sessions)(scope, *messages)


_any_address = re_path("", Denied.as_asgi())  # type: ignore[arg-type]
_router = URLRouter([*urlpatterns, _any_address])  # type: ignore[list-item]
application = ByAddress(OwnOrigin(CookieMiddleware(SessionMiddleware(SessionUser(_router)))), TokenUser(_router))
"""All websockets, with the person of each, and their session or token."""
