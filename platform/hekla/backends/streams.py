"""Bidirectional byte streams to a running pod: to a command in it (exec), or to one of its ports."""

from dataclasses import dataclass
from typing import Protocol


class Stream(Protocol):
    """A connection to a server in a pod. It ends when either side closes it."""

    async def receive(self) -> bytes:
        """The next bytes; empty after the end. Raises BackendError if the stream broke or no server listens there."""

    async def send(self, data: bytes) -> None:
        """Send these bytes. Raises BackendError if the stream broke."""


@dataclass(frozen=True, slots=True)
class Output:
    """A part of a command's output. `is_error`: from standard error; a terminal has only one output."""

    data: bytes
    is_error: bool = False


class PodCommand(Protocol):
    """A command that runs in a pod beside the pod's own. It continues if the caller disconnects."""

    async def receive(self) -> Output | None:
        """Its next output; None after its end. Raises BackendError if it could not run, or the stream broke."""

    async def send(self, data: bytes) -> None:
        """Write to its standard input. Raises BackendError if the stream broke."""

    async def end_input(self) -> None:
        """Close its standard input."""

    async def resize(self, columns: int, rows: int) -> None:
        """Set the size of its terminal."""

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None until it has ended."""
