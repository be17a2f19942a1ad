"""Exec and port-forward through the API server, over websockets (Kubernetes 1.30 and later).

Each message begins with the number of its stream. A command has streams for its input, its outputs, its result, and the
size of its terminal; a port has one for data and one for errors.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from http import HTTPStatus
from typing import Any

import aiohttp

from hekla.backends.base import BackendError, PodKey, UnknownPod
from hekla.backends.kubernetes import instruments, names
from hekla.backends.kubernetes.access import Access
from hekla.backends.kubernetes.api import ApiError, unreachable
from hekla.backends.kubernetes.parts import KubernetesParts
from hekla.backends.kubernetes.pod_state import PodState
from hekla.backends.streams import Output
from hekla.domain.translation import gettext_noop

NOT_GRANTED = gettext_noop(
    "Hekla may not run commands in pods of this cluster until its operator applies rights-terminals.yaml."
)
NO_PORTS = gettext_noop(
    "Hekla may not reach ports of pods of this cluster until its operator applies rights-connections.yaml."
)
_COMMANDS, _PORTS = "v5.channel.k8s.io", "v4.channel.k8s.io"
_INPUT, _OUTPUT, _ERRORS, _END, _SIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_DATA, _PROBLEM = 0, 1
_PIECE_BYTES = 32 * 1024
_HANDSHAKE_SECONDS = 20.0
_SIGN_OF_LIFE_SECONDS = 30.0
_PATIENCE = aiohttp.ClientTimeout(total=None, sock_connect=5.0)
_OVER = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED)


@contextlib.asynccontextmanager
async def open_exec(
    access: Access, pod: str, command: Sequence[str], *, in_terminal: bool
) -> AsyncIterator["ExecStream"]:
    """Run a command in the pod with this API path. Raises BackendError."""
    parameters = [("container", names.MAIN), ("stdin", "true"), ("stdout", "true")]
    parameters += [("tty", "true")] if in_terminal else [("stderr", "true")]
    parameters += [("command", word) for word in command]
    async with _socket(access, f"{pod}/exec", parameters, _COMMANDS) as socket:
        yield ExecStream(socket)


@contextlib.asynccontextmanager
async def open_port(access: Access, pod: str, port: int) -> AsyncIterator["PortStream"]:
    """Connect to a port of the pod with this API path. Raises BackendError."""
    async with _socket(access, f"{pod}/portforward", [("ports", str(port))], _PORTS) as socket:
        yield PortStream(socket)


class _Channels:
    """A websocket whose messages carry the number of their stream."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def _next(self) -> tuple[int, bytes] | None:
        """The next message as stream number and data; None after the other side has closed. Raises BackendError."""
        while True:
            try:
                message = await self._socket.receive()
            except (aiohttp.ClientError, OSError, RuntimeError) as error:
                raise unreachable(error) from error
            if message.type in _OVER:
                return None
            if message.type is aiohttp.WSMsgType.ERROR:
                raise BackendError(f"The connection to the pod failed: {message.data}")
            if message.type is aiohttp.WSMsgType.BINARY and message.data:
                return message.data[0], message.data[1:]

    async def _put(self, stream: int, data: bytes) -> None:
        try:
            await self._socket.send_bytes(bytes([stream]) + data)
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            raise unreachable(error) from error

    async def _put_all(self, stream: int, data: bytes) -> None:
        for begin in range(0, len(data), _PIECE_BYTES):
            await self._put(stream, data[begin : begin + _PIECE_BYTES])


class ExecStream(_Channels):
    """Implements `streams.PodCommand`."""

    exit_code: int | None = None

    async def receive(self) -> Output | None:
        """The next output, of standard output or error."""
        while self.exit_code is None:
            stream, data = await self._next() or (None, b"")
            if stream is None:
                raise BackendError("The connection to the pod failed before its command ended")
            if stream == _END:
                self.exit_code = _exit_code(data)
            elif stream in (_OUTPUT, _ERRORS) and data:
                return Output(data, stream == _ERRORS)
        return None

    async def send(self, data: bytes) -> None:
        """Write to its standard input, in messages of limited size."""
        await self._put_all(_INPUT, data)

    async def end_input(self) -> None:
        """Close its standard input by a message that closes the stream."""
        await self._put(_CLOSE, bytes([_INPUT]))

    async def resize(self, columns: int, rows: int) -> None:
        """Set the size of its terminal; no effect without one."""
        await self._put(_SIZE, json.dumps({"Width": columns, "Height": rows}).encode())


class PortStream(_Channels):
    """Implements `streams.Stream`. The first message of each of the two streams repeats the number of the port."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        super().__init__(socket)
        self._started: set[int] = set()

    async def receive(self) -> bytes:
        """The next data; empty after the end."""
        while (found := await self._next()) is not None:
            stream, data = found
            if stream not in self._started:
                self._started.add(stream)
            elif stream == _DATA and data:
                return data
            elif stream == _PROBLEM and data:
                raise BackendError(f"The port cannot be reached: {data.decode(errors='replace')[:500]}")
        return b""

    async def send(self, data: bytes) -> None:
        """Send data, in messages of limited size."""
        await self._put_all(_DATA, data)


@contextlib.asynccontextmanager
async def _socket(
    access: Access, path: str, parameters: Sequence[tuple[str, str]], protocol: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    instruments.count("GET", path)
    async with aiohttp.ClientSession(timeout=_PATIENCE, cookie_jar=aiohttp.DummyCookieJar()) as session:
        header, login = await access.header_async(), access.login
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                socket = await session.ws_connect(
                    login.server + path,
                    params=parameters,
                    protocols=(protocol,),
                    headers=header,
                    heartbeat=_SIGN_OF_LIFE_SECONDS,
                    **login.aiohttp_options,
                )
        except aiohttp.WSServerHandshakeError as error:
            raise ApiError(error.status, "", _refusal(error.status, path)) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise unreachable(error) from error
        async with socket:
            yield socket


def _refusal(status: int, path: str) -> str:
    if status == HTTPStatus.FORBIDDEN:
        return NOT_GRANTED if path.endswith("/exec") else NO_PORTS
    return f"The cluster lets nobody into this pod ({status})"


def _exit_code(message: bytes) -> int:
    """The exit code in a command's result. Raises BackendError if the command could not run."""
    try:
        status: dict[str, Any] = json.loads(message)
        if status["status"] == "Success":
            return 0
        causes = (status.get("details") or {}).get("causes") or ()
        code = next((cause["message"] for cause in causes if cause.get("reason") == "ExitCode"), None)
        if code is not None:
            return int(code)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise unreachable(error) from error
    raise BackendError(f"The command could not run: {str(status.get('message', ''))[:500]}")


class PodStreams:
    """Implements `base.Exec` and `base.PortForwarding`, through the API server: pods need not be reachable directly."""

    def __init__(self, parts: KubernetesParts, find_pod: Callable[[PodKey], PodState | None]) -> None:
        self._parts, self._find_pod = parts, find_pod

    @contextlib.asynccontextmanager
    async def run(self, key: PodKey, command: Sequence[str], *, in_terminal: bool = False) -> AsyncIterator[ExecStream]:
        """Run a command by the pod's exec subresource."""
        access, pod = self._parts.access, await self._path_of(key)
        async with open_exec(access, pod, command, in_terminal=in_terminal) as running:
            yield running

    @contextlib.asynccontextmanager
    async def connect(self, key: PodKey, port: int) -> AsyncIterator[PortStream]:
        """Connect by the pod's portforward subresource."""
        async with open_port(self._parts.access, await self._path_of(key), port) as stream:
            yield stream

    async def _path_of(self, key: PodKey) -> str:
        """The API path of the pod. Raises UnknownPod."""
        pod = await asyncio.to_thread(self._find_pod, key)
        if pod is None:
            raise UnknownPod(f"There is no pod {key.name} here")
        return pod.path
