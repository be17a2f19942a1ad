"""Connections to the server in a pod, kept for the next requests of the same session, and the parser of responses."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from http import HTTPStatus

import httptools

from hekla.backends.base import BackendError
from hekla.backends.streams import Stream
from hekla.live.proxy.headers import Header

CONNECT_SECONDS = 10.0
MAX_OPEN, MAX_IDLE = 64, 16
"""Connections of one session."""
IDLE_SECONDS = 30.0
_MAX_HEAD_BYTES, _MAX_FIELDS = 64 * 1024, 200
_SWITCHING, _LAST_STATUS = 101, 599


class UpstreamError(Exception):
    """The server in the pod does not answer, or what it answers is no response."""


class Connection:
    """One connection. `is_reused`: it has carried a response before."""

    def __init__(self, stream: Stream, stack: AsyncExitStack) -> None:
        self.stream, self._stack = stream, stack
        self.is_reused, self.idle_since = False, 0.0

    async def close(self) -> None:
        """Close it. Errors of a broken connection do not matter any more."""
        with suppress(BackendError, OSError):
            await self._stack.aclose()


class UpstreamPool:
    """The connections of one session. `connect`: opens one. It may be replaced: clusters get new configurations."""

    def __init__(self, connect: Callable[[], AbstractAsyncContextManager[Stream]]) -> None:
        self.connect = connect
        self._idle: list[Connection] = []
        self._slots = asyncio.Semaphore(MAX_OPEN)
        self._closing: set[asyncio.Task[None]] = set()

    async def acquire(self, *, fresh: bool) -> Connection:
        """A connection; a new one if `fresh`, or if none is idle. Raises UpstreamError."""
        if self._slots.locked():
            await self._wait_for_slot()
        else:
            await self._slots.acquire()  # at once
        if self._idle and not fresh:
            connection = self._idle.pop()
            connection.is_reused = True
            return connection
        try:
            return await self._open()
        except BaseException:
            self._slots.release()
            raise

    async def _wait_for_slot(self) -> None:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._slots.acquire()
        except TimeoutError as error:
            raise UpstreamError("Too many connections") from error

    def release(self, connection: Connection, *, is_reusable: bool) -> None:
        """Give a connection back, for the next request or to be closed."""
        self._slots.release()
        connection.idle_since = time.monotonic()
        if is_reusable and len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            self._close([connection])

    def close_idle(self, older_than: float = 0.0) -> None:
        """Close the connections that are idle for so many seconds."""
        latest = time.monotonic() - older_than
        old = [one for one in self._idle if one.idle_since <= latest]
        self._idle = [one for one in self._idle if one.idle_since > latest]
        self._close(old)

    async def _open(self) -> Connection:
        stack = AsyncExitStack()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return Connection(await stack.enter_async_context(self.connect()), stack)
        except (BackendError, TimeoutError, OSError) as error:
            raise UpstreamError(str(error)) from error

    def _close(self, connections: list[Connection]) -> None:
        for connection in connections:
            task = asyncio.create_task(connection.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


class ResponseParser:
    """Parses one response. `has_head`: status and headers are complete; `is_complete`: the body too."""

    def __init__(self, *, is_head_request: bool) -> None:
        self.status = 0
        self.headers: list[Header] = []
        self.has_head = self.is_complete = self.is_reusable = False
        self._is_head_request, self._is_interim = is_head_request, False
        self._size, self._body = 0, list[bytes]()
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> list[bytes]:
        """Parse the next bytes. Returns the parts of the body among them. Raises UpstreamError."""
        if self.is_complete and data:
            raise UpstreamError("Bytes after the response")
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.is_complete:
                raise UpstreamError("No HTTP response") from error
            self.is_reusable = False
        parts, self._body = self._body, []
        self._size = 0 if parts else self._size + len(data)
        if self._size > 2 * _MAX_HEAD_BYTES:  # the parser holds a field until it ends, in the head and behind the body
            raise UpstreamError("Too large a head")
        return parts

    def end(self) -> None:
        """The connection has ended, which ends the body of some responses. Raises UpstreamError for the others."""
        if self.is_complete:
            return
        length = {name for name, _value in self.headers} & {b"content-length", b"transfer-encoding"}
        if not self.has_head or length:
            raise UpstreamError("The connection ended within the response")
        self.is_complete = True

    # What the parser calls

    def on_message_begin(self) -> None:
        """Another response: after an interim one."""
        if self.is_complete:
            raise UpstreamError("Several responses")
        self.headers, self._is_interim = [], False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head."""
        if self.has_head:  # a trailer
            return
        self.headers.append((name.lower(), value))
        if len(self.headers) > _MAX_FIELDS:
            raise UpstreamError("Too many fields")

    def on_headers_complete(self) -> None:
        """The end of the head."""
        self.status = self._parser.get_status_code()
        if self.status == _SWITCHING or self.status > _LAST_STATUS:
            raise UpstreamError("An upgrade that was not requested, or no status of HTTP")
        self._is_interim = self.status < 200  # noqa: PLR2004
        if self._is_interim:
            return
        self.has_head = True
        if self.status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):  # its length is that of another response
            self.headers = [field for field in self.headers if field[0] != b"content-length"]
        if self._is_head_request:
            self._complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        if self._is_head_request:
            raise UpstreamError("A body for HEAD")
        self._body.append(body)

    def on_message_complete(self) -> None:
        """The end of the response."""
        if not self._is_interim and not self.is_complete:
            self._complete()

    def _complete(self) -> None:
        self.is_complete = True
        self.is_reusable = self._parser.should_keep_alive()
