"""Many websockets at once, each with one small message a second that comes back."""

import asyncio
import base64
import os
import time
from collections.abc import Sequence
from typing import cast

from hekla.bench.proxy.requests import Endpoint
from hekla.cli.client import Failure

_AT_ONCE = 20
_OPEN_SECONDS = 60.0
_LAST_SECONDS = 5.0
_BYTES = 100
_TEXT, _MASKED = 1, 128


class EchoedSocket(asyncio.Protocol):
    """One websocket. `delays`: seconds of each message that came back; one at a time."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.is_open: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.delays: list[float] = []
        self._received, self._sent_at = b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Request the upgrade."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Report that it did not open."""
        if not self.is_open.done():
            self.is_open.set_result(False)

    def data_received(self, data: bytes) -> None:
        """Read the answer to the upgrade, then messages. Those of a server have no mask."""
        self._received += data
        if not self.is_open.done():
            head, end, self._received = self._received.partition(b"\r\n\r\n")
            if end:
                self.is_open.set_result(b" 101 " in head[:30])
            else:
                self._received = head
        if self.is_open.done() and len(self._received) >= 2 + _BYTES:
            self.delays.append(time.perf_counter() - self._sent_at)
            self._received = self._received[2 + _BYTES :]

    def send(self) -> None:
        """Send a message; its mask changes nothing."""
        self._sent_at = time.perf_counter()
        self.transport.write(bytes((_MASKED | _TEXT, _MASKED | _BYTES)) + bytes(4) + b"x" * _BYTES)


class OpenSockets:
    """Those of one measurement, on a loop of their own. `run` opens them, `echo` measures them, `close` ends them."""

    def __init__(self, endpoints: Sequence[Endpoint], number: int) -> None:
        self._loop = asyncio.new_event_loop()
        places = [endpoints[at % len(endpoints)] for at in range(number)]
        self._sockets = self._loop.run_until_complete(_open_all(places))

    def echo(self, seconds: int) -> list[float]:
        """Send a message a second on each. Returns all delays, in seconds. Raises Failure if one is lost."""
        return self._loop.run_until_complete(_echo_all(self._sockets, seconds))

    def close(self) -> None:
        """Close them."""
        for one in self._sockets:
            one.transport.abort()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()


async def _open_all(endpoints: Sequence[Endpoint]) -> list[EchoedSocket]:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def opened(endpoint: Endpoint) -> EchoedSocket:
        key = base64.b64encode(os.urandom(16)).decode()
        fields = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}")
        request = endpoint.head("GET", "/echo", *fields)
        async with slots:
            loop = asyncio.get_running_loop()
            _transport, found = await loop.create_connection(
                lambda: EchoedSocket(request), endpoint.host, endpoint.port
            )
            if not await asyncio.wait_for(found.is_open, _OPEN_SECONDS):
                raise Failure("A websocket was refused.")
            return found

    return await asyncio.gather(*map(opened, endpoints))


async def _echo_all(sockets: Sequence[EchoedSocket], seconds: int) -> list[float]:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for at in range(seconds * len(sockets)):
        await asyncio.sleep(began + at / len(sockets) - loop.time())
        sockets[at % len(sockets)].send()
    deadline = loop.time() + _LAST_SECONDS
    while any(len(one.delays) < seconds for one in sockets):
        if loop.time() > deadline:
            raise Failure("A message of a websocket did not come back.")
        await asyncio.sleep(0.01)
    return [delay for one in sockets for delay in one.delays]
