"""Connections to servers in local pods. The proxy of sessions carries gigabytes through them."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from typing import cast

from hekla.backends.base import BackendError

_READ_AHEAD_BYTES = 64 * 1024
"""If more than this waits here, the server waits too. One piece may be larger: the event loop reads 250 kB at once."""
_PIECE_COST = 64
"""What the bytes of a piece count more: a server may send them one by one, and each is an object."""
_CLOSE_SECONDS = 5.0


class SocketStream(asyncio.Protocol):
    """Implements `streams.Stream`.

    Pieces pass as they arrive. asyncio's own streams would copy each twice, in parts of 64 KiB, and stop the socket for
    most of them.
    """

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_paused = self._is_full = self._has_ended = self._is_lost = False
        self._error: Exception | None = None
        self._news, self._has_room, self._is_closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def receive(self) -> bytes:
        """All bytes that have arrived; waits for the first."""
        while not self._pieces:
            if self._error is not None:
                raise _failure(self._error)
            if self._has_ended:
                return b""
            self._news.clear()
            await self._news.wait()
        data = self._pieces.popleft() if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._waiting_bytes = 0
        if self._is_paused and not self._is_lost:
            self._is_paused = False
            self.transport.resume_reading()
        return data

    async def send(self, data: bytes) -> None:
        """Send the data; waits while the other side is slow."""
        self._require_connection()
        self.transport.write(data)
        if self._is_full:
            await self._has_room.wait()
            self._require_connection()

    async def close(self) -> None:
        """Send what is left, for some seconds, and close the connection."""
        self.transport.close()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._is_closed.wait()
        finally:
            self.transport.abort()  # a server that reads nothing would keep the socket and its data forever

    def _require_connection(self) -> None:
        if self._is_lost:
            raise _failure(self._error)

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived."""
        self._pieces.append(data)
        self._waiting_bytes += len(data) + _PIECE_COST
        if self._waiting_bytes > _READ_AHEAD_BYTES and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()
        self._news.set()

    def eof_received(self) -> bool:
        """The server sends no more. It may still read."""
        self._has_ended = True
        self._news.set()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by either side."""
        self._error, self._has_ended, self._is_lost = exc, True, True
        for event in (self._news, self._has_room, self._is_closed):
            event.set()

    def pause_writing(self) -> None:
        """Enough bytes wait for the server."""
        self._is_full = True
        self._has_room.clear()

    def resume_writing(self) -> None:
        """The server has read most of them."""
        self._is_full = False
        self._has_room.set()


@contextlib.asynccontextmanager
async def open_socket(host: str, port: int) -> AsyncIterator[SocketStream]:
    """A connection, closed at the end. Raises BackendError if no server listens there."""
    try:
        _transport, stream = await asyncio.get_running_loop().create_connection(SocketStream, host, port)
    except OSError as error:
        raise BackendError(f"The port cannot be reached: {error.strerror}") from error
    try:
        yield stream
    finally:
        await stream.close()


def _failure(error: Exception | None) -> BackendError:
    reason = (error.strerror if isinstance(error, OSError) else None) or "Connection reset by peer"
    return BackendError(f"The connection to the pod failed: {reason}")
