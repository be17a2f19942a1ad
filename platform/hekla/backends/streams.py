"""Ways into a pod that runs: a command in it, and a port of it. Both are streams of bytes that go two ways."""

from dataclasses import dataclass
from typing import Protocol


class Stream(Protocol):
    """A connection to a server in a pod. It is over when either side ends it."""

    async def receive(self) -> bytes:
        """What comes next; nothing once it is over. Raises BackendError where it broke, or nobody listens there."""

    async def send(self, data: bytes) -> None:
        """Raises BackendError where it broke."""


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of what a command wrote. `is_error`: to its standard error; a terminal has but one output."""

    data: bytes
    is_error: bool = False


class Command(Protocol):
    """A command that runs in a pod beside the pod's own. Who leaves it leaves it to itself."""

    async def receive(self) -> Output | None:
        """What it writes next; None once it has ended. Raises BackendError if it could not run, or the line broke."""

    async def send(self, data: bytes) -> None:
        """Its standard input. Raises BackendError where the line broke."""

    async def end_input(self) -> None:
        """Nothing more will be sent."""

    async def resize(self, columns: int, rows: int) -> None:
        """How large its terminal is."""

    @property
    def exit_code(self) -> int | None:
        """None while it has not ended."""
