"""URLs of the websockets. Connections that no page makes are denied, with at most one short line in the log."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from channels.auth import AuthMiddleware
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import CookieMiddleware, SessionMiddleware
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import SessionBase
from django.urls import path, re_path

from hekla.apps.accounts.models import User
from hekla.apps.login_sessions import selectors as login_sessions
from hekla.live.consumers import LogConsumer, PageConsumer
from hekla.live.terminals.consumer import TerminalConsumer

log = logging.getLogger(__name__)
Asgi = Callable[..., Awaitable[None]]
urlpatterns = [  # Channels passes ASGI applications to `path`, which is typed for views
    path("ws/live/", PageConsumer.as_asgi()),  # type: ignore[arg-type]
    path("ws/logs/<int:pod_id>/", LogConsumer.as_asgi()),  # type: ignore[arg-type]
    path("ws/terminals/<int:pod_id>/", TerminalConsumer.as_asgi()),  # type: ignore[arg-type]
]


class Denied(AsyncWebsocketConsumer):
    """Denies a websocket."""

    async def connect(self) -> None:
        """Close before accepting: the browser gets a 403."""
        log.warning("websocket denied: %.200r", self.scope["path"])
        await self.close()


class OwnOrigin:
    """Denies pages of other sites. An `Origin` header that is no URL makes Channels' own check raise."""

    def __init__(self, application: Asgi) -> None:
        self._check, self._denied = AllowedHostsOriginValidator(application), Denied.as_asgi()

    async def __call__(self, scope: Any, *messages: Any) -> None:  # noqa: ANN401  (receive, send)
        """Serve the websocket, or deny it."""
        try:
            for name, value in scope["headers"]:
                if name == b"origin":
                    urlsplit(value.decode("latin1"))
        except ValueError:
            await self._denied(scope, *messages)
        else:
            await self._check(scope, *messages)


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


_any_address = re_path("", Denied.as_asgi())  # type: ignore[arg-type]
application = OwnOrigin(CookieMiddleware(SessionMiddleware(SessionUser(URLRouter([*urlpatterns, _any_address])))))  # type: ignore[list-item]
"""All websockets, with the session and the person of each."""
