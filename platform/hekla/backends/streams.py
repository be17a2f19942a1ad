"""Streams into a running pod: of a command in it, or of one of its ports. Bytes go both ways."""

from dataclasses import dataclass
from typing import Protocol


class Stream(Protocol):
    """A connection to a server in a pod. It ends when either side closes it."""

    async def receive(self) -> bytes:
        """The next bytes; empty once it has ended. Raises BackendError if it broke, or no server listens there."""

    async def send(self, data: bytes) -> None:
        """Raises BackendError if it broke."""


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of a command's output. `is_error`: of its standard error; a terminal has only one output."""

    data: bytes
    is_error: bool = False


class PodCommand(Protocol):
    """A command that runs in a pod beside the pod's own. It goes on if the caller disconnects."""

    async def receive(self) -> Output | None:
        """Its next output; None once it has ended. Raises BackendError if it could not run, or the stream broke."""

    async def send(self, data: bytes) -> None:
        """Write to its standard input. Raises BackendError if the stream broke."""

    async def end_input(self) -> None:
        """Close its standard input."""

    async def resize(self, columns: int, rows: int) -> None:
        """Set the size of its terminal."""

    @property
    def exit_code(self) -> int | None:
        """None until it has ended."""
