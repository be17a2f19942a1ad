"""Simulates many browsers in one process: opens the websockets of a plan, and records each message with its time.

It has its own websocket code, because a library would need more CPU per message than the server, and the client must
not limit the measurement. It supports only what Hekla's server uses: unfragmented messages and pings.
"""

import asyncio
import base64
import json
import os
import re
import sys
import time
import zlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from hekla.lib.open_files import allow_most

_AT_ONCE = 40
_SEQ = re.compile(rb'"seq": ?(\d+)')
_HEAD = 200
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_SHORT, _LONG = 126, 127
_GZIP = 31
_OPEN_SECONDS = 120.0


class ReceivedEvents:
    """The received messages: the socket, the event number and the time of each."""

    def __init__(self) -> None:
        self.sockets, self.numbers, self.times = array("q"), array("q"), array("d")

    def note(self, socket: int, number: int) -> None:
        """Record a message that arrives now."""
        self.sockets.append(socket)
        self.numbers.append(number)
        self.times.append(time.monotonic())

    def write(self, path: Path) -> None:
        """Write the records into a file, and clear them."""
        with path.open("wb") as file:
            for column in (self.sockets, self.numbers, self.times):
                column.tofile(file)
        self.__init__()  # type: ignore[misc]


class Browser(asyncio.Protocol):
    """One open page."""

    def __init__(self, place: int, request: bytes, heard: ReceivedEvents) -> None:
        self.place, self.request, self.heard = place, request, heard
        self.is_open: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.is_upgraded = False
        self.received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the upgrade request."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self.request)

    def connection_lost(self, _error: Exception | None) -> None:
        """Report a failure if the socket was not open yet."""
        if not self.is_open.done():
            self.is_open.set_result(False)

    def data_received(self, data: bytes) -> None:
        """Read the response to the upgrade, then frames."""
        self.received += data
        if not self.is_upgraded:
            head, end, rest = bytes(self.received).partition(b"\r\n\r\n")
            if not end:
                return
            self.is_upgraded = b" 101 " in head.split(b"\r\n")[0]
            self.received = bytearray(rest)
        while self._took_frame():
            pass

    def _took_frame(self) -> bool:
        """Process the next frame; False if it is incomplete. Frames of a server have no mask."""
        if len(self.received) < 2:  # noqa: PLR2004
            return False
        size, start = self.received[1] & 127, 2
        if size >= _SHORT:
            start = 4 if size == _SHORT else 10
            size = int.from_bytes(self.received[2:start])
        if len(self.received) < start + size:
            return False
        kind = self.received[0] & 15
        self._take(kind, bytes(self.received[start : start + (size if kind == _PING else min(size, _HEAD))]))
        del self.received[: start + size]
        return True

    def _take(self, kind: int, data: bytes) -> None:
        if kind == _PING:
            mask = os.urandom(4)
            masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
            self.transport.write(bytes((128 | _PONG, 128 | len(data))) + mask + masked)
        elif kind in {_TEXT, _BINARY}:
            head = zlib.decompressobj(_GZIP).decompress(data, _HEAD) if kind == _BINARY else data
            if found := _SEQ.search(head):
                self.heard.note(self.place, int(found[1]))
            if not self.is_open.done():
                self.is_open.set_result(True)
        elif kind == _CLOSE:
            self.transport.close()


def _request(host: str, path: str, cookie: str) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: {host}",
        f"Origin: http://{host}",
        f"Cookie: {cookie}",
        *("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"),
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "Accept-Language: en",
        "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _open(host: str, plan: Sequence[tuple[str, str]], heard: ReceivedEvents) -> list[Browser]:
    """Open all sockets, `_AT_ONCE` in parallel. Returns them in the order of the plan."""
    loop, places = asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE)
    name, port = host.rsplit(":", 1)

    async def opened(place: int) -> Browser:
        path, cookie = plan[place]
        async with places:
            request = _request(host, path, cookie)
            _, browser = await loop.create_connection(lambda: Browser(place, request, heard), name, int(port))
            await asyncio.wait_for(browser.is_open, _OPEN_SECONDS)
            return browser

    return await asyncio.gather(*map(opened, range(len(plan))))


async def _run(host: str, plan: Sequence[tuple[str, str]]) -> None:
    """Open the sockets and print how many are open. For each path on stdin, write the records to that path."""
    heard, loop = ReceivedEvents(), asyncio.get_running_loop()
    browsers = await _open(host, plan, heard)
    print(sum(browser.is_open.result() for browser in browsers), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        heard.write(Path(line.strip()))
        print("written", flush=True)


def main() -> None:
    """`python -m hekla.bench.console.socket_client HOST:PORT PLAN`: the plan is a JSON list of paths with cookies."""
    allow_most()
    import uvloop  # noqa: PLC0415  (installed with the server, on systems that uvloop supports)

    uvloop.run(_run(sys.argv[1], json.loads(Path(sys.argv[2]).read_text())))


if __name__ == "__main__":
    main()
