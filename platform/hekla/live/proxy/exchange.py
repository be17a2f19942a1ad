"""One HTTP request of a session and its response, streamed both ways: no body is ever held as a whole.

`send` of the server waits while the browser is slow, and the stream to the pod while the pod is. So both bodies flow at
the speed of their slower end, in constant memory.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hekla.backends.base import BackendError
from hekla.live.proxy.headers import BadRequest, Destination, Header, request_head, response_headers, target
from hekla.live.proxy.pages import Send
from hekla.live.proxy.upstream import Connection, ResponseParser, UpstreamError, UpstreamPool

Receive = Callable[[], Awaitable[dict[str, Any]]]
FIRST_BYTE_SECONDS = 300.0
"""From the end of the request to the first byte of its response. Some tools answer only when something happened."""
_LENGTH = re.compile(rb"[0-9]{1,18}")
_NO_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    """What a request goes to. `cookies`: the names of the console's own, which the tool neither gets nor sets."""

    pool: UpstreamPool
    destination: Destination
    cookies: frozenset[bytes]


class BrowserLeft(Exception):
    """The browser has closed its connection."""


class Exchange:
    """A request with its response. `is_started`: a part of the response has been sent."""

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send, proxied: ProxyTarget) -> None:
        self._receive, self._send, self._target = receive, send, proxied
        self._method: str = scope["method"]
        self._head, self._is_chunked, self._has_body = _head(scope, proxied)
        self.is_started = self._is_sent = self._has_left = False

    async def run(self) -> None:
        """Carry it out. Raises UpstreamError, BrowserLeft."""
        pool, is_repeatable = self._target.pool, self._method in _NO_BODY and not self._has_body
        first = await self._body() if self._has_body else (b"", False)
        while True:
            connection = await pool.acquire(fresh=not is_repeatable)
            parser = ResponseParser(is_head_request=self._method == "HEAD")
            is_reusable = False
            try:
                await self._carry(connection, parser, first)
                is_reusable = parser.is_reusable
                return
            except (UpstreamError, BackendError) as error:
                if connection.is_reused and not parser.headers:
                    pool.close_idle()  # the server closed it meanwhile, and so perhaps the others
                    continue
                raise error if isinstance(error, UpstreamError) else UpstreamError(str(error)) from error
            finally:
                pool.release(connection, is_reusable=is_reusable)

    async def _carry(self, connection: Connection, parser: ResponseParser, first: tuple[bytes, bool]) -> None:
        """Send the request, and pass the response on. While that lasts, notice that the browser leaves."""
        data, has_more = first
        await connection.stream.send(self._head + self._framed(data, is_last=not has_more))
        self._is_sent = not has_more
        exchange = asyncio.current_task()
        browser = asyncio.create_task(self._browser_side(connection, parser, exchange))
        try:
            while not parser.is_complete:
                data = await self._next(connection, may_wait=has_more or parser.has_head)
                parts = parser.feed(data) if data else []
                if not data:
                    parser.end()
                await self._pass_on(parser, parts)
        except asyncio.CancelledError:
            if self._has_left and exchange is not None:
                exchange.uncancel()
                raise BrowserLeft from None
            raise
        finally:
            browser.cancel()
            parser.is_reusable = parser.is_reusable and self._is_sent

    async def _browser_side(
        self, connection: Connection, parser: ResponseParser, exchange: "asyncio.Task[Any] | None"
    ) -> None:
        """Send the rest of the body, then wait until the browser leaves, which ends the exchange."""
        try:
            while not self._is_sent:
                data, has_more = await self._body()
                await connection.stream.send(self._framed(data, is_last=not has_more))
                self._is_sent = not has_more
            while True:
                await self._body()
        except BackendError:
            return  # its response may say why the tool reads no more
        except BrowserLeft:
            if exchange is not None and not parser.is_complete:
                self._has_left = True
                exchange.cancel()

    async def _next(self, connection: Connection, *, may_wait: bool) -> bytes:
        """The next bytes of the tool. `may_wait`: as long as it takes."""
        if may_wait:
            return await connection.stream.receive()
        try:
            async with asyncio.timeout(FIRST_BYTE_SECONDS):
                return await connection.stream.receive()
        except TimeoutError as error:
            raise UpstreamError("No response") from error

    async def _pass_on(self, parser: ResponseParser, parts: list[bytes]) -> None:
        if not parser.has_head:
            return
        if not self.is_started:
            self.is_started = True
            headers = response_headers(parser.headers, self._target.destination, self._target.cookies)
            await self._send({"type": "http.response.start", "status": parser.status, "headers": headers})
        if parts or parser.is_complete:
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            await self._send({"type": "http.response.body", "body": body, "more_body": not parser.is_complete})

    async def _body(self) -> tuple[bytes, bool]:
        """The next part of the body, and whether more follows. Raises BrowserLeft."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise BrowserLeft
        return message.get("body", b""), message.get("more_body", False)

    def _framed(self, data: bytes, *, is_last: bool) -> bytes:
        if not self._is_chunked:
            return data
        chunk = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        return chunk + (b"0\r\n\r\n" if is_last else b"")


def _head(scope: dict[str, Any], proxied: ProxyTarget) -> tuple[bytes, bool, bool]:
    """The head of the request for the tool, whether its body is chunked, and whether it has one. Raises BadRequest."""
    headers: Sequence[Header] = scope["headers"]
    lengths = [value for name, value in headers if name == b"content-length"]
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1 or any(not _LENGTH.fullmatch(value) for value in lengths):
        raise BadRequest
    if codings and codings[0].lower() != b"chunked":
        raise BadRequest
    path = target(scope["raw_path"], scope["query_string"], proxied.destination)
    head = request_head(scope["method"], path, headers, proxied.destination, proxied.cookies)
    has_body = bool(codings) or bool(lengths and int(lengths[0]))
    if codings:
        head += b"transfer-encoding: chunked\r\n"
    elif lengths or scope["method"] not in _NO_BODY:
        head += b"content-length: " + (lengths[0] if lengths else b"0") + b"\r\n"
    return head + b"\r\n", bool(codings), has_body
