"""Commands and terminals in running containers."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from urllib.parse import quote

from hekla.backends.base import BackendError, PodKey
from hekla.backends.local.containers.engine import VERSION, Engine, EngineError
from hekla.backends.local.containers.order import ContainerOrder
from hekla.backends.streams import Output

_CHUNK_BYTES = 64 * 1024
_HEADER_BYTES = 8
_ERRORS = 2
_SWITCHED = (200, 101)
_LOOKS, _LOOK_EVERY_SECONDS = 20, 0.1


class ContainerExec:
    """Implements `base.Exec`. `container_of`: the container of a pod; raises UnknownPod."""

    def __init__(self, container_of: Callable[[PodKey], ContainerOrder]) -> None:
        self._container_of = container_of

    @contextlib.asynccontextmanager
    async def run(
        self, key: PodKey, command: Sequence[str], *, in_terminal: bool = False
    ) -> AsyncIterator["ContainerCommand"]:
        """Run a command as the user of the pod, in its working folder."""
        container = await asyncio.to_thread(self._container_of, key)
        engine = Engine(container["socket"])
        body = {
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": not in_terminal,
            "Tty": in_terminal,
            "Cmd": list(command),
            "User": container["body"]["User"],
            "WorkingDir": container["body"]["WorkingDir"],
        }
        made = await _answer(engine, "POST", f"/containers/{quote(container['name'])}/exec", body)
        reader, writer = await _start(container["socket"], str(made["Id"]), in_terminal=in_terminal)
        try:
            yield ContainerCommand(engine, str(made["Id"]), reader, writer, in_terminal=in_terminal)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


class ContainerCommand:
    """Implements `streams.PodCommand`."""

    exit_code: int | None = None

    def __init__(
        self,
        engine: Engine,
        number: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        in_terminal: bool,
    ) -> None:
        self._engine, self._number, self._in_terminal = engine, number, in_terminal
        self._reader, self._writer = reader, writer

    async def receive(self) -> Output | None:
        """The next output: of a terminal as it comes, else one frame of standard output or error."""
        try:
            if self._in_terminal:
                found = Output(await self._reader.read(_CHUNK_BYTES))
            else:
                header = await self._reader.readexactly(_HEADER_BYTES)
                found = Output(await self._reader.readexactly(int.from_bytes(header[4:], "big")), header[0] == _ERRORS)
        except asyncio.IncompleteReadError:
            found = Output(b"")
        except OSError as error:
            raise BackendError(f"The connection to the pod failed: {error.strerror}") from error
        if found.data:
            return found
        self.exit_code = await self._final_code()
        return None

    async def _final_code(self) -> int:
        """The exit code, which the engine knows shortly after the output has ended."""
        for _again in range(_LOOKS):
            state = await _answer(self._engine, "GET", f"/exec/{self._number}/json")
            if not state.get("Running"):
                return int(str(state.get("ExitCode") or 0))
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
        raise BackendError("The connection to the pod failed: the command still runs")

    async def send(self, data: bytes) -> None:
        """Write to its standard input; waits while the command is slow."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise BackendError(f"The connection to the pod failed: {error.strerror}") from error

    async def end_input(self) -> None:
        """Close its standard input."""
        with contextlib.suppress(OSError):
            self._writer.write_eof()

    async def resize(self, columns: int, rows: int) -> None:
        """Set the size of its terminal; no effect without one."""
        if self._in_terminal:
            await _answer(self._engine, "POST", f"/exec/{self._number}/resize?w={columns}&h={rows}")


async def _answer(engine: Engine, method: str, path: str, body: object = None) -> dict[str, object]:
    try:
        return await asyncio.to_thread(engine.request, method, path, body)
    except (EngineError, OSError) as error:
        raise BackendError(f"The container engine refuses this: {error}") from error


async def _start(path: str, number: str, *, in_terminal: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Start the command. Afterwards the connection carries its input and output."""
    body = json.dumps({"Detach": False, "Tty": in_terminal}).encode()
    head = (
        f"POST {VERSION}/exec/{number}/start HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\n"
        f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(head.encode() + body)
        await writer.drain()
        answer = (await reader.readuntil(b"\r\n\r\n")).decode(errors="replace")
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise BackendError(f"The container engine does not answer: {error}") from error
    if int(answer.split(" ", 2)[1]) not in _SWITCHED:
        writer.close()
        raise BackendError(f"The container engine refuses this: {answer.splitlines()[0]}")
    return reader, writer
