"""One websocket of a session: a websocket to the tool, and messages in both directions."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake
from websockets.frames import Frame, Opcode
from websockets.protocol import Event
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from hekla.backends.base import BackendError
from hekla.live.proxy.exchange import ProxyTarget, Receive
from hekla.live.proxy.headers import Header, forwarded, target
from hekla.live.proxy.pages import Send
from hekla.live.proxy.upstream import CONNECT_SECONDS, Connection, UpstreamError

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_GONE, _BROKEN = 1001, 1011
_CLOSE_SECONDS = 2.0
_PART_BYTES, _FRAMES_AT_ONCE = 4 * 1024, 64
"""What is parsed and what is sent until others have their turn: a hostile tool sends frames of two bytes."""
_silent = logging.getLogger("hekla.live.proxy.websockets")
_silent.disabled = True


class ToolSocket:
    """A websocket to the tool over one connection."""

    def __init__(self, connection: Connection, path: bytes, subprotocols: Sequence[str]) -> None:
        self._stream = connection.stream
        uri = parse_uri("ws://localhost/")
        names = [Subprotocol(name) for name in subprotocols]
        self._protocol = ClientProtocol(uri, subprotocols=names or None, max_size=MAX_MESSAGE_BYTES, logger=_silent)
        self._path = path
        self._events: list[Event] = []
        self._unread = memoryview(b"")
        self._parts = bytearray()
        self._is_text = False
        self._writing = asyncio.Lock()

    @property
    def subprotocol(self) -> str | None:
        """The one that the tool chose."""
        return self._protocol.subprotocol

    async def open(self, headers: Sequence[Header]) -> None:
        """Shake hands. Raises UpstreamError if the tool refuses."""
        request = self._protocol.connect()
        request.path = self._path.decode("latin-1")
        del request.headers["Host"]
        for name, value in headers:
            request.headers[name.decode("latin-1")] = value.decode("latin-1")
        self._protocol.send_request(request)
        await self._flush()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                while not self._events:
                    await self._read()
        except TimeoutError as error:
            raise UpstreamError("No answer to the websocket") from error
        if self._protocol.handshake_exc is not None:
            raise UpstreamError("The tool refused the websocket") from self._protocol.handshake_exc

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message of the browser."""
        if (text := message.get("text")) is not None:
            self._protocol.send_text(text.encode())
        else:
            self._protocol.send_binary(message.get("bytes") or b"")
        await self._flush()

    async def close(self, code: int) -> None:
        """Say good-bye, if that is still possible: a tool that reads nothing must not hold up the end."""
        with suppress(Exception):
            async with asyncio.timeout(_CLOSE_SECONDS):
                self._protocol.send_close(code if code in (1000, 1001) else _GONE)
                await self._flush()

    async def messages(self, send: Send) -> int:
        """Pass the tool's messages on, until it closes. Returns its code."""
        while True:
            events, self._events = self._events, []
            for number, event in enumerate(events, 1):
                if number % _FRAMES_AT_ONCE == 0:
                    await asyncio.sleep(0)
                if isinstance(event, Frame) and (found := self._whole(event)) is not None:
                    await send({"type": "websocket.send", **found})
            if self._protocol.close_expected() or self._protocol.close_rcvd is not None:
                await self._flush()
                received = self._protocol.close_rcvd
                return received.code if received is not None else _BROKEN
            await self._read()

    def _whole(self, frame: Frame) -> dict[str, Any] | None:
        """The message that this frame completes, if it does."""
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return None
        if frame.opcode is not Opcode.CONT:
            self._parts, self._is_text = bytearray(), frame.opcode is Opcode.TEXT
        self._parts += frame.data  # no list: a message may have any number of empty frames
        if not frame.fin:
            return None
        data, self._parts = self._parts, bytearray()
        return {"text": data.decode(errors="replace")} if self._is_text else {"bytes": bytes(data)}

    async def _read(self) -> None:
        if self._unread:
            await asyncio.sleep(0)
        else:
            self._unread = memoryview(await self._stream.receive())
        data, self._unread = bytes(self._unread[:_PART_BYTES]), self._unread[_PART_BYTES:]
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        self._events += self._protocol.events_received()
        await self._flush()
        if not data:
            raise UpstreamError("The connection to the pod ended")

    async def _flush(self) -> None:
        """Send what is to be sent. Without anything it does not wait: a tool may read only after it was read."""
        if data := b"".join(self._protocol.data_to_send()):
            async with self._writing:  # whoever waits first sends first
                await self._stream.send(data)


async def bridge(scope: dict[str, Any], receive: Receive, send: Send, proxied: ProxyTarget) -> None:
    """Connect the websocket of the browser with one of the tool. Raises UpstreamError, BadRequest before it is open."""
    path = target(scope["raw_path"], scope["query_string"], proxied.destination)
    headers = list(forwarded(scope["headers"], proxied.destination, proxied.cookies))
    connection = await proxied.pool.acquire(fresh=True)
    try:
        tool = ToolSocket(connection, path, scope["subprotocols"])
        try:
            await tool.open(headers)
        except (BackendError, InvalidHandshake) as error:
            raise UpstreamError(str(error)) from error
        await send({"type": "websocket.accept", "subprotocol": tool.subprotocol})
        await _both(tool, receive, send)
    finally:
        proxied.pool.release(connection, is_reusable=False)


async def _both(tool: ToolSocket, receive: Receive, send: Send) -> None:
    """Pass messages on in both directions, until one side closes, or the admission ends."""
    browser = asyncio.create_task(_from_browser(tool, receive))
    pod = asyncio.create_task(tool.messages(send))
    code = _GONE
    try:
        await asyncio.wait({browser, pod}, return_when=asyncio.FIRST_COMPLETED)
        if pod.done() and not pod.cancelled():
            code = _BROKEN if pod.exception() is not None else _sendable(pod.result())
    finally:
        is_gone = browser.done() and not browser.cancelled() and browser.exception() is None
        for task in (browser, pod):
            task.cancel()
        await asyncio.gather(browser, pod, return_exceptions=True)
        await tool.close(code)
        if not is_gone:
            with suppress(Exception):  # the browser may leave at the same time
                await send({"type": "websocket.close", "code": code})


async def _from_browser(tool: ToolSocket, receive: Receive) -> None:
    while (message := await receive())["type"] == "websocket.receive":
        await tool.send(message)


def _sendable(code: int) -> int:
    """A code that may be sent: some only say that none came."""
    return code if 1000 <= code <= 4999 and code not in (1004, 1005, 1006, 1015) else 1000  # noqa: PLR2004
