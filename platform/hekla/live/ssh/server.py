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
from asyncssh.stream import SSHTCPStreamSession

from hekla.backends.base import Exec, PodKey, PortForwarding
from hekla.live.ssh import commands
from hekla.live.ssh.forwards import Forward, reach

log = logging.getLogger(__name__)
MAX_COMMANDS, MAX_FORWARDS = 10, 32
"""At once, on one connection."""
WINDOW_BYTES, FORWARD_WINDOW_BYTES = 1024 * 1024, 256 * 1024
"""How much a client may send before the pod has read it, on each channel."""
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class PodAccess:
    """A pod as SSH reaches it. `ports`: None if its cluster connects to no ports."""

    key: PodKey
    name: str
    exec: Exec
    ports: PortForwarding | None


class PodSession(asyncssh.SSHServerProcess[bytes]):
    """A session. asyncssh itself would serve SFTP from the files of the console, or not at all."""

    def __init__(self, run: Callable[[asyncssh.SSHServerProcess[bytes]], Awaitable[None]]) -> None:
        super().__init__(run, None, 0, False)

    def subsystem_requested(self, subsystem: str) -> bool:  # noqa: ARG002
        """Let `commands` refuse it with a sentence."""
        return True

    def session_started(self) -> None:
        """Run what was requested."""
        errors = asyncssh.SSHWriter[bytes](self, self._chan, asyncssh.EXTENDED_DATA_STDERR)
        work = self._start_process(
            asyncssh.SSHReader[bytes](self, self._chan), asyncssh.SSHWriter[bytes](self, self._chan), errors
        )
        assert self._conn is not None  # noqa: S101  (a session starts on a connection)
        assert work is not None  # noqa: S101  (`run` is a coroutine)
        self._conn.create_task(work)


class PodServer(asyncssh.SSHServer):
    """Serves one connection. `commands`, `forwards`: how many it has had. `room`: waits until the client reads."""

    def __init__(self, access: PodAccess) -> None:
        self.commands, self.forwards = 0, 0
        self.opened_at = self.used_at = time.monotonic()
        self.room: Callable[[], Awaitable[None]]
        self._access = access
        self._connection: asyncssh.SSHServerConnection | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._open_commands, self._open_forwards = 0, 0

    def backlog(self) -> int:
        """How many bytes wait for the client."""
        transport = self._connection and self._connection._transport  # asyncssh itself does not look at this number
        return transport.get_write_buffer_size() if transport else 0

    def stop(self) -> None:
        """End the connection and all that runs on it."""
        for task in self._tasks:
            task.cancel()
        if self._connection is not None:
            self._connection.abort()

    async def note_use(self) -> None:
        """Bytes are about to be sent to the client. Wait until it reads."""
        self.used_at = time.monotonic()
        await self.room()

    # What asyncssh calls

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Note the connection."""
        self._connection = conn

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        """No login is needed, whatever the name of the user."""
        return False

    def session_requested(self) -> tuple[asyncssh.SSHServerChannel[bytes], PodSession]:
        """Open a session."""
        assert self._connection is not None  # noqa: S101  (it calls this)
        channel = self._connection.create_server_channel(encoding=None, errors="strict", window=WINDOW_BYTES)
        return channel, PodSession(self._run)

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
        assert self._connection is not None  # noqa: S101  (it calls this)
        channel = self._connection.create_tcp_channel(window=FORWARD_WINDOW_BYTES)
        return channel, self._forward(dest_port)

    async def _forward(self, port: int) -> asyncssh.SSHTCPSession[bytes]:
        self.forwards += 1
        self._open_forwards += 1
        access = self._access
        forward = Forward(reach(access.ports, access.exec, access.key, port), self.note_use)
        task = self._start(forward.run())
        task.add_done_callback(self._forward_ended)
        await forward.opened()
        return SSHTCPStreamSession[bytes](forward.carry)

    def _forward_ended(self, _task: asyncio.Task[None]) -> None:
        self._open_forwards -= 1

    async def _own(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it in a task that ends with the connection."""
        await asyncio.wait([self._start(work)])

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a channel of an SSH connection failed", exc_info=error)
