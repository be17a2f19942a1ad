"""A request or a websocket to the host of a session: who it is, whether they may, and the way to the tool."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from django.conf import settings
from django.db import DatabaseError
from redis.exceptions import RedisError

from hekla.apps.workbench import entry
from hekla.domain.errors import NotFound
from hekla.live.proxy import pages
from hekla.live.proxy.activity import SessionTraffic
from hekla.live.proxy.admissions import MAX_OPEN, Grant, SessionAdmission, admissions
from hekla.live.proxy.exchange import BrowserLeft, Exchange, ProxyTarget, Receive
from hekla.live.proxy.headers import BadRequest, Header, is_foreign, own_cookie
from hekla.live.proxy.pages import Send
from hekla.live.proxy.sockets import bridge
from hekla.live.proxy.upstream import UpstreamError
from hekla.live.threads import in_thread

_RESERVED = b"/.hekla/"


class TooManyOpen(Exception):
    """So many requests and websockets of the session are open that it gets no more now."""


class SessionRequest:
    """A request to the session of this slug."""

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send, slug: str, hosts: list[bytes]) -> None:
        self._scope, self._receive, self._send, self._slug = scope, receive, send, slug
        self._headers: list[Header] = scope["headers"]
        self._has_one_host = len(hosts) == 1
        self._origin = f"{entry.scheme()}://".encode() + hosts[0].lower()
        self._cookie = entry.cookie_name()

    async def http(self) -> None:
        """Serve a request of HTTP."""
        method = self._scope["method"]
        try:
            if is_foreign(method, self._headers, self._origin):
                await pages.foreign(self._headers, self._send)
            elif self._scope["raw_path"] == entry.ENTER_PATH.encode() and method == "GET":
                await self._enter()
            else:
                admission, grant = await self._find()
                passing = self._counted(grant)
                exchange = Exchange(self._scope, passing.receive, passing.send, self._target(grant))
                await _guarded(admission, self._run(exchange, grant))
        except BadRequest:
            await pages.not_understood(self._headers, self._send)
        except NotFound:
            await pages.closed(self._headers, self._send)
        except TooManyOpen:
            await pages.too_many(self._headers, self._send, MAX_OPEN)
        except (DatabaseError, RedisError):
            await pages.unavailable(self._headers, self._send)

    async def websocket(self) -> None:
        """Serve a websocket, of pages of this very origin only."""
        await self._receive()  # websocket.connect
        try:
            if [value for name, value in self._headers if name == b"origin"] != [self._origin]:
                raise NotFound("Another site.")
            admission, grant = await self._find()
            passing = self._counted(grant)
            await _guarded(admission, bridge(self._scope, passing.receive, passing.send, self._target(grant)))
        except (NotFound, BadRequest, TooManyOpen, UpstreamError, DatabaseError):
            await self._send({"type": "websocket.close", "code": 1008})  # before it is open: the browser gets a 403

    async def _find(self) -> tuple[SessionAdmission, Grant]:
        """Who this is, and whether they may. The same for requests and websockets.

        Raises NotFound, BadRequest, TooManyOpen, DatabaseError.
        """
        if not self._has_one_host:
            raise BadRequest
        if self._scope["raw_path"].startswith(_RESERVED):
            raise NotFound("No such page.")
        admission, grant = await admissions().find(self._slug, own_cookie(self._headers, self._cookie))
        if len(admission.open) >= MAX_OPEN:
            raise TooManyOpen
        return admission, grant

    def _counted(self, grant: Grant) -> SessionTraffic:
        return SessionTraffic(grant.session, grant.tool, self._scope, self._receive, self._send)

    def _target(self, grant: Grant) -> ProxyTarget:
        return ProxyTarget(grant.pool, replace(grant.destination, origin=self._origin), self._cookie)

    async def _run(self, exchange: Exchange, grant: Grant) -> None:
        try:
            await exchange.run()
        except UpstreamError as error:
            if not exchange.is_started:  # else the server closes the connection, so that the browser notices
                await pages.no_answer(self._headers, self._send, grant.port, str(error)[:300])
        except BrowserLeft:
            pass

    async def _enter(self) -> None:
        """Take a ticket, set the cookie, and open the tool. With a used ticket, the cookie of before decides."""
        if not self._has_one_host:
            raise BadRequest
        ticket = parse_qs(self._scope["query_string"].decode("latin-1")).get("ticket", [""])[0]
        found = await in_thread(partial(entry.redeem, ticket, self._slug)) if ticket else None
        cookie = found.encrypt() if found is not None else own_cookie(self._headers, self._cookie)
        _admission, grant = await admissions().find(self._slug, cookie)
        secure = "; Secure" if settings.SESSION_COOKIE_SECURE else ""
        line = f"{self._cookie}={cookie}; Path=/; HttpOnly; SameSite=Lax{secure}" if found is not None else ""
        await pages.redirect(self._send, grant.tool.start_path, line)


async def _guarded(admission: SessionAdmission, work: Awaitable[None]) -> None:
    """Do this as long as the admission lasts. When it ends, the connection of the browser is closed."""
    with admission.opened():
        try:
            await work
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not admission.has_ended:
                raise
            task.uncancel()
