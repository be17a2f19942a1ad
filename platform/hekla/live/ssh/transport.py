"""One SSH connection on a stream of bytes, which its caller carries."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncssh

from hekla.live.ssh import host_key
from hekla.live.ssh.server import PodServer

log = logging.getLogger(__name__)
asyncssh.set_log_level(logging.WARNING)  # else the log has the commands of people
LOGIN_SECONDS = 20.0
MAX_BACKLOG = 1024 * 1024
"""More bytes for a slow client wait in the pod, not here."""
MAX_HELD_BACK, MAX_REPLIES = 32, 10_000
"""Packets that wait while a client does not end a key exchange: of output, and with replies to its requests."""
_CHUNK_BYTES = 64 * 1024
_FLUSH_SECONDS = 2.0
_KEY_EXCHANGES = "-rsa*,diffie-hellman-*"
"""Not those with large numbers: a new RSA key for each exchange would hold up the whole process."""
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes256-ctr")
_SIGN_OF_LIFE_SECONDS, _MISSED_SIGNS = 15, 2


class SshTransport:
    """`server`: serves the connection. `send`: sends bytes to the client; raises OSError if it has gone."""

    def __init__(self, server: PodServer, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._server, self._send = server, send
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._theirs.setblocking(False)
        self._has_room = asyncio.Event()
        self._is_over = False
        server.room = self.room

    async def run(self) -> None:
        """Serve until either side ends it."""
        relay = asyncio.create_task(self._relay())
        try:
            await self._serve(relay)
        finally:
            self._is_over = True
            self._has_room.set()
            self._server.stop()
            relay.cancel()
            with suppress(OSError):
                self._ours.shutdown(socket.SHUT_RDWR)  # wakes a `feed` that waits
            await asyncio.wait([relay])

    def close(self) -> None:
        """Release its handles, after `run`."""
        self._ours.close()
        self._theirs.close()

    async def feed(self, data: bytes) -> None:
        """Take bytes of the client. It waits while too many bytes wait for the client."""
        while not self._is_over and self._server.backlog() > MAX_BACKLOG:
            await self._more_room()
        if self._server.held_back() > MAX_REPLIES:
            self._server.stop()
        elif not self._is_over:
            with suppress(OSError):
                await asyncio.get_running_loop().sock_sendall(self._ours, data)

    async def room(self) -> None:
        """Wait until output may be sent. (asyncssh heeds only the window that a client names.)

        `feed` does not wait for the end of a key exchange: it brings that.
        """
        server = self._server
        while not self._is_over and (server.backlog() > MAX_BACKLOG or server.held_back() > MAX_HELD_BACK):
            await self._more_room()

    async def _more_room(self) -> None:
        self._has_room.clear()
        await self._has_room.wait()

    async def _serve(self, relay: asyncio.Task[None]) -> None:
        try:
            connection = await asyncssh.run_server(
                self._theirs,
                server_factory=lambda: self._server,
                server_host_keys=[host_key.private_key()],
                kex_algs=_KEY_EXCHANGES,
                encryption_algs=_CIPHERS,
                compression_algs=None,
                agent_forwarding=False,
                x11_forwarding=False,
                allow_scp=False,
                line_editor=False,
                gss_host=None,
                login_timeout=LOGIN_SECONDS,
                connect_timeout=LOGIN_SECONDS,
                keepalive_interval=_SIGN_OF_LIFE_SECONDS,
                keepalive_count_max=_MISSED_SIGNS,
            )
            await connection.wait_closed()
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(relay), _FLUSH_SECONDS)
        except (asyncssh.Error, OSError, ValueError, LookupError) as error:  # asyncssh passes on what bad bytes raise
            log.info("an SSH connection failed: %s", error)

    async def _relay(self) -> None:
        """Send what SSH writes, until its end."""
        loop = asyncio.get_running_loop()
        try:
            with suppress(OSError):
                while data := await loop.sock_recv(self._ours, _CHUNK_BYTES):
                    await self._send(data)
                    self._has_room.set()
        finally:
            self._server.stop()
