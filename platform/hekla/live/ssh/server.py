"""What SSH clients may request of a pod: commands, shells, SFTP, and connections to ports of the pod itself.

There is no login in SSH, because the websocket below it has one. Agents, X11, sockets of files and ports at the console
are not forwarded.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import asyncssh
from asyncssh.channel import SSHChannel
from asyncssh.stream import SSHTCPStreamSession

from hekla.backends.base import Exec, PodKey, PortForwarding
from hekla.live.ssh import commands
from hekla.live.ssh.forwards import Forward, reach
from hekla.live.ssh.output_order import output_order

log = logging.getLogger(__name__)
MAX_COMMANDS, MAX_FORWARDS = 10, 32
"""At once, on one connection."""
WINDOW_BYTES, FORWARD_WINDOW_BYTES = 1024 * 1024, 256 * 1024
"""How much a client may send before the pod has read it, on each channel."""
MAX_CHANNELS = 64
"""Open channels of one connection, also those that run nothing yet or that the client does not close."""
MIN_PACKET_BYTES = 1024
"""Of the largest packet that a client accepts. With tiny packets, a short output would occupy the process for long."""
MAX_VALUES, MAX_VALUE_BYTES = 64, 1024
"""Of the environment that a client sends for a command."""
MAX_UNREAD = 1000
"""Pieces of input, signals and new sizes that the command has not read. asyncssh limits only the bytes of input."""
_MIN_WINDOW_BYTES = 64 * 1024
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class PodAccess:
    """A pod as SSH reaches it. `ports`: None if its cluster connects to no ports."""

    key: PodKey
    name: str
    exec: Exec
    ports: PortForwarding | None


class _FewValues(dict[bytes, bytes]):
    """An environment that ignores more than a few short values. (asyncssh takes them all.)"""

    def __setitem__(self, name: bytes, value: bytes) -> None:
        if len(self) < MAX_VALUES and len(name) + len(value) <= MAX_VALUE_BYTES:
            super().__setitem__(name, value)


def _require_packets(channel: SSHChannel[bytes]) -> None:
    """Raises ProtocolError, which ends the connection, if the client accepts only tiny packets."""
    if channel._send_pktsize < MIN_PACKET_BYTES:
        raise asyncssh.ProtocolError(f"Packets of {MIN_PACKET_BYTES} bytes must be possible")


class PodSession(asyncssh.SSHServerProcess[bytes]):
    """A session. asyncssh itself would serve SFTP from the files of the console, or not at all."""

    def __init__(
        self, run: Callable[[asyncssh.SSHServerProcess[bytes]], Awaitable[None]], note_input: Callable[[int], None]
    ) -> None:
        super().__init__(run, None, 0, False)
        self._note_input = note_input

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Input of the client."""
        self._note_input(len(data))
        super().data_received(data, datatype)

    def subsystem_requested(self, subsystem: str) -> bool:  # noqa: ARG002
        """Let `commands` refuse it with a sentence."""
        return True

    def connection_made(self, chan: SSHChannel[bytes]) -> None:
        """The channel is open. Raises ProtocolError."""
        super().connection_made(chan)
        _require_packets(chan)

    def exception_received(self, exc: Exception) -> None:
        """A signal, or a new size. Only the newest of several sizes counts."""
        unread = self._recv_buf[None]
        if unread and isinstance(exc, asyncssh.TerminalSizeChanged) and isinstance(unread[-1], type(exc)):
            unread[-1] = exc
        elif len(unread) < MAX_UNREAD:
            super().exception_received(exc)

    def session_started(self) -> None:
        """Run what was requested."""
        errors = asyncssh.SSHWriter[bytes](self, self._chan, asyncssh.EXTENDED_DATA_STDERR)
        work = self._start_process(
            asyncssh.SSHReader[bytes](self, self._chan), asyncssh.SSHWriter[bytes](self, self._chan), errors
        )
        assert self._conn is not None  # noqa: S101  (a session starts on a connection)
        assert work is not None  # noqa: S101  (`run` is a coroutine)
        self._conn.create_task(work)


class PortSession(SSHTCPStreamSession[bytes]):
    """A connection to a port of the pod."""

    def connection_made(self, chan: SSHChannel[bytes]) -> None:
        """The channel is open. Raises ProtocolError."""
        super().connection_made(chan)
        _require_packets(chan)


class PodServer(asyncssh.SSHServer):
    """Serves one connection. `commands`, `forwards`: how many it has had. `room`: waits until the client reads.

    `note_input`: called with the number of bytes that the client types or sends to a command.
    """

    def __init__(self, access: PodAccess) -> None:
        self.commands, self.forwards = 0, 0
        self.opened_at = self.used_at = time.monotonic()
        self.room: Callable[[], Awaitable[None]]
        self.note_input: Callable[[int], None] = lambda _count: None
        self._access = access
        self._connection: asyncssh.SSHServerConnection | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._open_commands, self._open_forwards = 0, 0
        self._is_over = False

    def backlog(self) -> int:
        """How many bytes wait for the client."""
        transport = self._connection and self._connection._transport  # asyncssh itself does not look at this number
        return transport.get_write_buffer_size() if transport else 0

    def held_back(self) -> int:
        """How many packets wait for the end of a key exchange, which the client may delay. asyncssh keeps them all."""
        return len(self._connection._deferred_packets) if self._connection else 0

    def stop(self) -> None:
        """End the connection and all that runs on it."""
        self._is_over = True
        for task in self._tasks:
            task.cancel()
        if self._connection is not None:
            self._connection.abort()

    async def note_use(self) -> None:
        """Bytes are about to be sent to the client. Wait until it reads, and for the turn of this channel."""
        self.used_at = time.monotonic()
        await self.room()
        await output_order().next()

    # What asyncssh calls

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Note the connection."""
        self._connection = conn

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        """No login is needed, whatever the name of the user."""
        return False

    def session_requested(self) -> tuple[asyncssh.SSHServerChannel[bytes], PodSession]:
        """Open a session."""
        connection = self._with_room()
        window = self._window(connection, WINDOW_BYTES)
        channel = connection.create_server_channel(encoding=None, errors="strict", window=window)
        channel._env = _FewValues()
        return channel, PodSession(self._run, self.note_input)

    async def _run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Run a command, a shell, or SFTP."""
        self.commands += 1
        if self._open_commands >= MAX_COMMANDS:
            commands.refuse(process, "This connection runs too many commands at once.")
            return
        self._open_commands += 1
        try:
            await self._own(commands.run(process, self._access.exec, self._access.key, self.note_use))
        finally:
            self._open_commands -= 1
            process.exit(commands.FAILED)  # does nothing after a proper end

    def connection_requested(
        self,
        dest_host: str,
        dest_port: int,
        orig_host: str,  # noqa: ARG002
        orig_port: int,  # noqa: ARG002
    ) -> tuple[asyncssh.SSHTCPChannel[bytes], Coroutine[Any, Any, asyncssh.SSHTCPSession[bytes]]]:
        """Connect to a port of the pod. Raises ChannelOpenError for any other place."""
        if dest_host.lower() not in {*_LOCAL, self._access.name} or not 0 < dest_port <= _MAX_PORT:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "Only ports of the pod are reached, at localhost"
            )
        if self._open_forwards >= MAX_FORWARDS:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, "Too many connections at once")
        connection = self._with_room()
        channel = connection.create_tcp_channel(window=self._window(connection, FORWARD_WINDOW_BYTES))
        access = self._access
        forward = Forward(reach(access.ports, access.exec, access.key, dest_port), self.note_use)
        self.forwards += 1
        self._open_forwards += 1  # now: asyncssh reads many requests before it awaits anything
        self._start(forward.run()).add_done_callback(self._forward_ended)
        return channel, self._opened(forward)

    @staticmethod
    async def _opened(forward: Forward) -> asyncssh.SSHTCPSession[bytes]:
        await forward.opened()
        return PortSession(forward.carry)

    def _with_room(self) -> asyncssh.SSHServerConnection:
        """The connection, if it may have one more channel. Raises ChannelOpenError."""
        assert self._connection is not None  # noqa: S101  (it calls this)
        if len(self._connection._channels) >= MAX_CHANNELS:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, "Too many open channels")
        return self._connection

    @staticmethod
    def _window(connection: asyncssh.SSHServerConnection, most: int) -> int:
        """How much may be sent on a new channel: less if there are others, as all is in the memory of the console."""
        return max(most // (1 + len(connection._channels)), _MIN_WINDOW_BYTES)

    def _forward_ended(self, _task: asyncio.Task[None]) -> None:
        self._open_forwards -= 1

    async def _own(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it in a task that ends with the connection."""
        await asyncio.wait([self._start(work)])

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        if self._is_over:  # it was requested just before
            task.cancel()
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a channel of an SSH connection failed", exc_info=error)
