"""A connection to a port of a pod, carried by an SSH channel."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress

import asyncssh

from hekla.backends.base import BackendError, Exec, PodKey, PortForwarding
from hekla.backends.streams import PodCommand, Stream

LINGER_SECONDS = 10.0
"""How long the server in the pod may send nothing after the client has ended its part."""
_CHUNK_BYTES = 32 * 1024
_CONNECTED = b"c"
_PROGRAM = """\
import os, socket, sys, threading
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
os.write(1, b"c")
def type_all():
    for data in iter(lambda: os.read(0, 65536), b""):
        peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
threading.Thread(target=type_all, daemon=True).start()
for data in iter(lambda: peer.recv(65536), b""):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
"""
_CONNECT = (
    *("sh", "-c", 'for name in python3 python; do command -v "$name" >/dev/null && exec "$name" -c "$0" "$1"; done'),
    _PROGRAM,
)


class _CommandStream:
    """Implements `streams.Stream` by a command that connects from inside the pod."""

    def __init__(self, running: PodCommand) -> None:
        self._running = running

    async def receive(self) -> bytes:
        """The next bytes; empty after the end."""
        while (piece := await self._running.receive()) is not None:
            if not piece.is_error:
                return piece.data
        return b""

    async def send(self, data: bytes) -> None:
        """Send these bytes."""
        await self._running.send(data)


@asynccontextmanager
async def reach(ports: PortForwarding | None, commands: Exec, key: PodKey, port: int) -> AsyncIterator[Stream]:
    """A connection to this port of the pod.

    Where the cluster cannot connect, a command in the pod does: it has the pod's own rights and network, and reaches
    servers that listen only there, such as those of editors. Raises BackendError.
    """
    async with AsyncExitStack() as stack:
        try:
            if ports is None:
                raise BackendError("The cluster connects to no ports of pods")
            found: Stream = await stack.enter_async_context(ports.connect(key, port))
        except BackendError:
            words = (*_CONNECT, str(port))
            found = _CommandStream(await stack.enter_async_context(commands.run(key, words)))
            if await found.receive() != _CONNECTED:
                raise
        yield found


class Forward:
    """`connection`: opens it. `note_use`: called before bytes are sent to the client; waits until it reads."""

    def __init__(
        self, connection: AbstractAsyncContextManager[Stream], note_use: Callable[[], Awaitable[None]]
    ) -> None:
        loop = asyncio.get_running_loop()
        self._connection, self._note_use = connection, note_use
        self._opened: asyncio.Future[None] = loop.create_future()
        self._ends: asyncio.Future[tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]] = loop.create_future()
        self._over = asyncio.Event()
        self._sent_at = 0.0

    async def run(self) -> None:
        """Connect, and carry bytes until either side ends."""
        try:
            async with self._connection as stream:
                self._opened.set_result(None)
                reader, writer = await self._ends
                await self._carry_both(stream, reader, writer)
        except (BackendError, OSError, asyncssh.Error):
            pass
        finally:
            self._over.set()
            if not self._opened.done():
                self._opened.set_result(None)

    async def opened(self) -> None:
        """Wait until the pod is connected. Raises ChannelOpenError if nothing listens there."""
        await self._opened
        if self._over.is_set():
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "Nothing listens at this port of the pod")

    async def carry(self, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
        """The channel is open. Wait for the end of the connection."""
        self._ends.set_result((reader, writer))
        await self._over.wait()
        writer.close()

    async def _carry_both(
        self, stream: Stream, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]
    ) -> None:
        from_pod = asyncio.create_task(self._from_pod(stream, writer))
        to_pod = asyncio.create_task(_to_pod(stream, reader))
        try:
            await asyncio.wait({from_pod, to_pod}, return_when=asyncio.FIRST_COMPLETED)
            self._sent_at = time.monotonic()
            while (left := self._sent_at + LINGER_SECONDS - time.monotonic()) > 0 and not from_pod.done():
                await asyncio.wait({from_pod}, timeout=left)
        finally:
            for task in (from_pod, to_pod):
                task.cancel()
                with suppress(BackendError, OSError, asyncssh.Error, asyncio.CancelledError):
                    await task

    async def _from_pod(self, stream: Stream, writer: asyncssh.SSHWriter[bytes]) -> None:
        while data := await stream.receive():
            await self._note_use()
            writer.write(data)
            await writer.drain()
            self._sent_at = time.monotonic()


async def _to_pod(stream: Stream, reader: asyncssh.SSHReader[bytes]) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        await stream.send(data)
