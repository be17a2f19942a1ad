"""Connections to servers in local pods."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from hekla.backends.base import BackendError

_CHUNK_BYTES = 64 * 1024
_CLOSE_SECONDS = 5.0


class SocketStream:
    """Implements `streams.Stream`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def receive(self) -> bytes:
        """The next bytes, as soon as they arrive."""
        try:
            return await self._reader.read(_CHUNK_BYTES)
        except OSError as error:
            raise BackendError(f"The connection to the pod failed: {error.strerror}") from error

    async def send(self, data: bytes) -> None:
        """Send the data; waits while the other side is slow."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise BackendError(f"The connection to the pod failed: {error.strerror}") from error


@contextlib.asynccontextmanager
async def open_socket(host: str, port: int) -> AsyncIterator[SocketStream]:
    """A connection, closed at the end. Raises BackendError if no server listens there."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        raise BackendError(f"The port cannot be reached: {error.strerror}") from error
    try:
        yield SocketStream(reader, writer)
    finally:
        writer.close()
        try:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await writer.wait_closed()
        finally:
            writer.transport.abort()  # a server that reads nothing would keep the socket and its data forever
