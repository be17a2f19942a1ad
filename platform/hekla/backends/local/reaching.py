"""Connections to servers in pods of this machine."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from hekla.backends.base import BackendError

_PIECE_BYTES = 64 * 1024


class SocketLine:
    """Implements `lines.Line`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def receive(self) -> bytes:
        """Whatever is there, as soon as anything is."""
        try:
            return await self._reader.read(_PIECE_BYTES)
        except OSError as error:
            raise BackendError(f"The line to the pod broke: {error.strerror}") from error

    async def send(self, data: bytes) -> None:
        """Waits while the other side is slow."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise BackendError(f"The line to the pod broke: {error.strerror}") from error


@contextlib.asynccontextmanager
async def reach(host: str, port: int) -> AsyncIterator[SocketLine]:
    """Connect, and let go at the end. Raises BackendError where nobody listens."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        raise BackendError(f"The port cannot be reached: {error.strerror}") from error
    try:
        yield SocketLine(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
