"""Commands and terminals in running pods of this machine. The pod's first process starts them (`sandbox.commands`)."""

import asyncio
import contextlib
import fcntl
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence

from hekla.backends.base import BackendError, PodKey
from hekla.backends.local.pod_folder import PodFolder
from hekla.backends.local.sandbox.commands import EXIT, MAX_REQUEST_BYTES, SET_SIZE, pack_size
from hekla.backends.local.sandbox.order import NAMESPACES
from hekla.backends.streams import Output
from hekla.domain.phases import PodPhase
from hekla.domain.translation import gettext_noop

NOT_RUNNING = gettext_noop("The pod is not running.")
NOT_APART = gettext_noop("This machine offers no namespaces for pods, so commands in them could outlive them.")
OLD = gettext_noop("The pod started before Hekla could run commands in it, or its first process does not answer.")
_ANSWER_SECONDS = 10.0
_CHUNK_BYTES = 64 * 1024
_PACKET_BYTES = 1024
_MOST_HANDLES = 3
_FIRST_SIZE = (80, 24)
_TERMINAL_ENV = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


class ProcessExec:
    """Implements `base.Exec`. `folder_of`: the folder of a pod; raises UnknownPod."""

    def __init__(self, folder_of: Callable[[PodKey], PodFolder]) -> None:
        self._folder_of = folder_of

    @contextlib.asynccontextmanager
    async def run(
        self, key: PodKey, command: Sequence[str], *, in_terminal: bool = False
    ) -> AsyncIterator["ProcessCommand"]:
        """Run a command as the user of the pod, in its working folder and with its environment."""
        request = json.dumps({
            "argv": list(command),
            "env": _TERMINAL_ENV if in_terminal else {},
            "size": _FIRST_SIZE if in_terminal else None,
        }).encode()  # fmt: skip
        if len(request) > MAX_REQUEST_BYTES or any("\0" in word for word in command) or not command:
            raise BackendError("The command is empty, too long, or holds a zero byte")
        client = await asyncio.to_thread(_connected, self._folder_of, key)
        running = await _begin(client, request)
        try:
            yield running
        finally:
            running.close()


def _connected(folder_of: Callable[[PodKey], PodFolder], key: PodKey) -> socket.socket:
    """A connection to the first process of the pod, which does not block. Raises BackendError."""
    folder = folder_of(key)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.setblocking(False)
    try:
        _require_possible(folder)
        place = os.open(folder.path, os.O_PATH | os.O_CLOEXEC)  # its path can be too long for the address of a socket
        try:
            client.connect(f"/proc/self/fd/{place}/{os.path.basename(folder.commands)}")
        finally:
            os.close(place)
    except OSError as error:
        client.close()
        raise BackendError(OLD) from error
    except BaseException:
        client.close()
        raise
    return client


async def _begin(client: socket.socket, request: bytes) -> "ProcessCommand":
    """Start a command. No thread waits for the pod, which may never answer. Raises BackendError."""
    handles: list[int] = []
    try:
        client.send(request)
        async with asyncio.timeout(_ANSWER_SECONDS):
            await _ready(client.fileno())
        answer, handles, _flags, _address = socket.recv_fds(client, _PACKET_BYTES, _MOST_HANDLES)
        if not handles:
            raise _failure(answer)
        for handle in handles:
            os.set_inheritable(handle, False)  # `recv_fds` ignores its flags
            os.set_blocking(handle, False)
    except BaseException as error:
        client.close()
        for handle in handles:
            os.close(handle)
        if isinstance(error, OSError):
            raise BackendError(OLD) from error
        raise
    return ProcessCommand(client, list(handles))


def _require_possible(folder: PodFolder) -> None:
    """Raise BackendError if no command can run in this pod."""
    try:
        order, status = folder.order(), folder.status()
    except ValueError as error:
        raise BackendError(f"The record of the pod is damaged: {error}") from error
    if order is None or status is None or status["phase"] != PodPhase.RUNNING:
        raise BackendError(NOT_RUNNING)
    if order["sandbox"] is None or NAMESPACES not in order["sandbox"]["layers"]:
        raise BackendError(NOT_APART)


def _failure(report: bytes) -> BackendError:
    """What the command's process reported instead of its end, as an error."""
    if not report:
        return BackendError("The pod has ended")
    text = report.decode(errors="replace").split(" ", 2)[-1]
    return BackendError(f"The command could not run: {text[:500]}")


class ProcessCommand:
    """Implements `streams.PodCommand`. `handles`: of its terminal, or of its input, output and errors."""

    exit_code: int | None = None

    def __init__(self, client: socket.socket, handles: list[int]) -> None:
        self._client = client
        self._in_terminal = len(handles) == 1
        self._input: int | None = handles[0]
        self._outputs = handles if self._in_terminal else handles[1:]
        self._open = list(self._outputs)

    async def receive(self) -> Output | None:
        """The next output. What is left when the command has ended comes before None."""
        while True:
            if found := self._read():
                return found
            if self.exit_code is not None:
                return None
            try:
                report = self._client.recv(_PACKET_BYTES)
            except BlockingIOError:
                await _ready(self._client.fileno(), *self._open)
                continue
            except OSError:
                report = b""
            word, _, code = report.decode(errors="replace").partition(" ")
            if word != EXIT:
                raise _failure(report)
            self.exit_code = int(code) if int(code) >= 0 else 128 - int(code)

    def _read(self) -> Output | None:
        """A part of an output, if there is one now."""
        for handle in tuple(self._open):
            try:
                data = os.read(handle, _CHUNK_BYTES)
            except BlockingIOError:
                continue
            except OSError:  # so the kernel tells that nothing holds the terminal any more
                data = b""
            if data:
                return Output(data, handle != self._outputs[0])
            self._open.remove(handle)
        return None

    async def send(self, data: bytes) -> None:
        """Write to its standard input; waits while the command is slow."""
        while data and self._input is not None:
            try:
                data = data[os.write(self._input, data) :]
            except BlockingIOError:
                await _ready(writable=self._input)
            except OSError as error:
                raise BackendError("The command does not read its input any more") from error

    async def end_input(self) -> None:
        """Close its standard input. A terminal gets an end of file."""
        if self._in_terminal:
            await self.send(b"\x04")
        elif self._input is not None:
            os.close(self._input)
            self._input = None

    async def resize(self, columns: int, rows: int) -> None:
        """Set the size of its terminal; no effect without one."""
        if self._in_terminal:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._outputs[0], SET_SIZE, pack_size(columns, rows))

    def close(self) -> None:
        """Disconnect. A terminal then sends SIGHUP to what runs in it."""
        self._client.close()
        for handle in self._outputs:
            os.close(handle)
        if not self._in_terminal and self._input is not None:
            os.close(self._input)
        self._input = None


async def _ready(*readable: int, writable: int | None = None) -> None:
    """Wait until one of these handles is ready."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def note() -> None:
        if not ready.done():
            ready.set_result(None)

    for handle in readable:
        loop.add_reader(handle, note)
    if writable is not None:
        loop.add_writer(writable, note)
    try:
        await ready
    finally:
        for handle in readable:
            loop.remove_reader(handle)
        if writable is not None:
            loop.remove_writer(writable)
