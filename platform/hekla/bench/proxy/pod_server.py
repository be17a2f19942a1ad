"""The program in the pod of a measurement, with nothing but Python: `python pod_server.py NUMBER`.

It listens on so many ports of the pod's address and prints them as a JSON list. GET answers with a small page, or after
`/bytes/` with that many bytes. POST reads its body and answers with the size. A websocket gets its messages back; it
supports only what the measurement sends: unfragmented messages below 126 bytes.
"""

import asyncio
import base64
import hashlib
import json
import os
import sys
from typing import cast

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_PAGE = b"x" * 100
_BLOCK = bytes(256 * 1024)
_MASKED, _CLOSE = 128, 8


class Served(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.is_socket = self.is_full = False
        self.expected = self.size = self.to_send = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self.transport = cast(asyncio.Transport, transport)

    def pause_writing(self) -> None:
        """The other side is slow."""
        self.is_full = True

    def resume_writing(self) -> None:
        """It has read again."""
        self.is_full = False
        self.pump()

    def pump(self) -> None:
        """Send more of the requested bytes."""
        while self.to_send and not self.is_full:
            block = _BLOCK[: self.to_send] if self.to_send < len(_BLOCK) else _BLOCK
            self.to_send -= len(block)
            self.transport.write(block)

    def data_received(self, data: bytes) -> None:
        """A part of a request, of its body, or of a message."""
        if self.expected:
            self.take_body(len(data))
            return
        self.received += data
        while self.received and not self.expected:
            if not (self.take_frame() if self.is_socket else self.take_head()):
                return

    def take_body(self, count: int) -> None:
        """Count a part of a body, whose end is the end of the data."""
        self.expected -= count
        if not self.expected:
            self.answer(str(self.size).encode())

    def take_head(self) -> bool:
        """Answer the next request; False if its head is incomplete."""
        head, end, rest = bytes(self.received).partition(b"\r\n\r\n")
        if not end:
            return False
        first, *lines = head.split(b"\r\n")
        method, path, _version = first.split(b" ")
        fields = {name.lower(): value for name, _colon, value in (line.partition(b": ") for line in lines)}
        self.received = bytearray()
        if method == b"POST":
            self.size = self.expected = int(fields[b"content-length"])
            self.take_body(len(rest))
        elif b"sec-websocket-key" in fields:
            self.upgrade(fields[b"sec-websocket-key"])
            self.received += rest
        elif path.startswith(b"/bytes/"):
            self.to_send = int(path[len(b"/bytes/") :])
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.to_send)
            self.pump()
        else:
            self.answer(_PAGE)
            self.received += rest
        return True

    def answer(self, body: bytes) -> None:
        """Send a page."""
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    def upgrade(self, key: bytes) -> None:
        """Open a websocket."""
        proof = base64.b64encode(hashlib.sha1(key + _GUID).digest())  # noqa: S324  (as websockets demand)
        head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        self.transport.write(head + b"Sec-WebSocket-Accept: " + proof + b"\r\n\r\n")
        self.is_socket = True

    def take_frame(self) -> bool:
        """Send the next message back; False if it is incomplete."""
        if len(self.received) < 6:  # noqa: PLR2004
            return False
        size = self.received[1] - _MASKED
        if len(self.received) < 6 + size:
            return False
        kind, mask, data = self.received[0] & 15, self.received[2:6], self.received[6 : 6 + size]
        del self.received[: 6 + size]
        plain = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self.transport.write(bytes((_MASKED | kind, size)) + plain)
        if kind == _CLOSE:
            self.transport.close()
        return True


async def serve(number: int) -> None:
    """Listen until the process ends."""
    loop, host = asyncio.get_running_loop(), os.environ["HEKLA_POD_ADDRESS"]
    servers = [await loop.create_server(Served, host, 0) for _ in range(number)]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
