"""Commands in pods that run on this machine, or answer what a test wants."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hekla.backends.base import BackendError, PodKey
from hekla.backends.streams import Output


class Command:
    """A command of this machine, or an answer in its place."""

    def __init__(self, pieces: Sequence[Output], exit_code: int | None, pause: float = 0.0) -> None:
        self._pieces, self.exit_code, self._pause = list(pieces), exit_code, pause

    async def send(self, _data: bytes) -> None:
        """Nobody reads it."""

    async def end_input(self) -> None:
        """Nobody reads it."""

    async def receive(self) -> Output | None:
        await asyncio.sleep(self._pause)
        return self._pieces.pop(0) if self._pieces else None


class Streams:
    """Runs commands on this machine. `answer`: what they answer instead."""

    def __init__(self, answer: Command | Exception | None = None) -> None:
        self._answer = answer
        self.commands: list[Sequence[str]] = []

    @asynccontextmanager
    async def run(self, _key: PodKey, command: Sequence[str]) -> AsyncIterator[Any]:
        self.commands.append(command)
        if isinstance(self._answer, Exception):
            raise self._answer
        if self._answer is not None:
            yield self._answer
            return
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            yield Process(process)
        finally:
            process.stdin.close()  # as the server does when the connection ends
            await process.wait()


class Process:
    """A process of this machine as a command in a pod."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    async def receive(self) -> Output | None:
        """Its output, in small pieces; its errors at the end."""
        if data := await self._process.stdout.read(1000):
            return Output(data)
        problems = await self._process.stderr.read()
        await self._process.wait()
        return Output(problems, True) if problems else None

    async def send(self, data: bytes) -> None:
        """Raises BackendError if it reads no more."""
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except OSError as error:
            raise BackendError("It has ended.") from error

    async def end_input(self) -> None:
        self._process.stdin.close()
