"""A request or a websocket to the host of a session: who it is, whether they may, and the way to the tool."""

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from django.conf import settings
from django.db import DatabaseError
from redis.exceptions import RedisError

from hekla.apps.workbench import browsers, entry
from hekla.apps.workbench.browsers import Entrance
from hekla.domain.errors import NotFound
from hekla.live.proxy import pages
from hekla.live.proxy.activity import SessionTraffic
from hekla.live.proxy.admissions import MAX_OPEN, Grant, SessionAdmission, admissions
from hekla.live.proxy.exchange import BrowserLeft, Exchange, ProxyTarget, Receive
from hekla.live.proxy.headers import BadRequest, Header, is_foreign, is_service_worker, own_cookie
from hekla.live.proxy.pages import Send
from hekla.live.proxy.paths import split_path
from hekla.live.proxy.sockets import bridge
from hekla.live.proxy.upstream import UpstreamError
from hekla.live.threads import in_thread

_RESERVED = b"/.hekla/"


class TooManyOpen(Exception):
    """So many requests and websockets of the session are open that it gets no more now."""


async def serve(scope: dict[str, Any], receive: Receive, send: Send, slug: str, hosts: list[bytes]) -> None:
    """Serve a request or a websocket to a host of sessions. `slug`: empty at the host that all sessions share."""
    if not slug:
        slug, path = split_path(scope["raw_path"])
        if not path:
            await _without_session(scope, receive, send, slug)
            return
        scope = {**scope, "raw_path": path}
    request = SessionRequest(scope, receive, send, slug, hosts)
    await (request.http() if scope["type"] == "http" else request.websocket())


async def _without_session(scope: dict[str, Any], receive: Receive, send: Send, slug: str) -> None:
    """Answer on the shared host outside of all sessions, or at one whose path lacks its last character."""
    if scope["type"] == "websocket":
        await receive()  # websocket.connect
        await send({"type": "websocket.close", "code": 1008})
    elif slug and scope["method"] in ("GET", "HEAD"):
        await pages.redirect(send, f"{entry.mount(slug)}/")
    else:
        await pages.outside(scope["headers"], send)


class SessionRequest:
    """A request to the session of this slug. On a shared host, its path is without that of the session."""

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send, slug: str, hosts: list[bytes]) -> None:
        self._scope, self._receive, self._send, self._slug = scope, receive, send, slug
        self._headers: list[Header] = scope["headers"]
        self._has_one_host = len(hosts) == 1
        self._origin = f"{entry.scheme()}://".encode() + hosts[0].lower()
        self._cookie, self._browser_cookie = entry.cookie_name(), entry.browser_cookie_name()
        self._entering = "POST" if self._browser_cookie else "GET"

    async def http(self) -> None:
        """Serve a request of HTTP."""
        method = self._scope["method"]
        try:
            if is_foreign(method, self._headers, self._origin):
                await pages.foreign(self._headers, self._send)
            elif self._browser_cookie and is_service_worker(self._headers):
                await pages.no_worker(self._headers, self._send)
            elif self._scope["raw_path"] == entry.ENTER_PATH.encode() and method in ("GET", self._entering):
                await (self._enter() if method == self._entering else pages.confirm(self._headers, self._send))
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
        except (NotFound, BadRequest, TooManyOpen, UpstreamError, DatabaseError, RedisError):
            await self._send({"type": "websocket.close", "code": 1008})  # before it is open: the browser gets a 403

    async def _find(self) -> tuple[SessionAdmission, Grant]:
        """Who this is, and whether they may. The same for requests and websockets.

        Raises NotFound, BadRequest, TooManyOpen, DatabaseError, RedisError.
        """
        if not self._has_one_host:
            raise BadRequest
        if self._scope["raw_path"].startswith(_RESERVED):
            raise NotFound("No such page.")
        cookie = own_cookie(self._headers, self._cookie)
        admission, grant = await admissions().find(self._slug, cookie, self._browser())
        if len(admission.open) >= MAX_OPEN:
            raise TooManyOpen
        return admission, grant

    def _counted(self, grant: Grant) -> SessionTraffic:
        return SessionTraffic(grant.session, grant.tool, self._scope, self._receive, self._send)

    def _target(self, grant: Grant) -> ProxyTarget:
        destination = replace(grant.destination, origin=self._origin, mount=entry.mount(self._slug).encode())
        names = (self._cookie, self._browser_cookie, settings.SESSION_COOKIE_NAME)
        return ProxyTarget(grant.pool, destination, frozenset(name.encode() for name in names if name))

    def _browser(self) -> str:
        """The cookie of this browser on a shared host; empty if it has none."""
        return own_cookie(self._headers, self._browser_cookie) if self._browser_cookie else ""

    async def _run(self, exchange: Exchange, grant: Grant) -> None:
        try:
            await exchange.run()
        except UpstreamError as error:
            if not exchange.is_started:  # else the server closes the connection, so that the browser notices
                await pages.no_answer(self._headers, self._send, grant.port, str(error)[:300])
        except BrowserLeft:
            pass

    async def _enter(self) -> None:
        """Take a ticket, set the cookie, and open the tool. With a used ticket, the cookie of before decides.

        On a shared host a person does that, on the page of `pages.confirm`: any page of the web could send their
        browser here with the ticket of somebody else, whose program would then share the origin with their session.
        """
        if not self._has_one_host:
            raise BadRequest
        ticket = parse_qs(self._scope["query_string"].decode("latin-1")).get("ticket", [""])[0]
        entrance = await in_thread(partial(self._redeem, ticket)) if ticket else None
        cookie, browser = own_cookie(self._headers, self._cookie), self._browser()
        if entrance is not None:
            cookie, browser = entrance.entry.encrypt(), entrance.entry.browser_cookie
        _admission, grant = await admissions().find(self._slug, cookie, browser)
        headers = self._entry_headers(entrance, cookie) if entrance is not None else ()
        await pages.redirect(self._send, entry.mount(self._slug) + grant.tool.start_path, *headers)

    def _redeem(self, ticket: str) -> Entrance | None:
        found = entry.redeem(ticket, self._slug)
        if found is None or not self._browser_cookie:
            return Entrance(found) if found is not None else None
        return browsers.enter(found, self._browser())

    def _entry_headers(self, entrance: Entrance, cookie: str) -> Iterator[Header]:
        """The cookies of the pass. A browser that comes from another session of a shared host forgets what it stored.

        Its cookies are not named there: browsers would delete those of the console too, if that is in the same domain.
        """
        yield self._set_cookie(self._cookie, cookie, f"{entry.mount(self._slug)}/")
        if self._browser_cookie:
            yield self._set_cookie(self._browser_cookie, entrance.entry.browser_cookie, "/")
        for slug in entrance.left:
            if slug != self._slug:
                yield self._set_cookie(self._cookie, "", f"{entry.mount(slug)}/; Max-Age=0")
        if entrance.is_new:
            yield (b"clear-site-data", b'"cache", "storage"')

    @staticmethod
    def _set_cookie(name: str, value: str, path: str) -> Header:
        secure = "; Secure" if settings.SESSION_COOKIE_SECURE else ""
        return b"set-cookie", f"{name}={value}; Path={path}; HttpOnly; SameSite=Lax{secure}".encode()


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
