"""One supervised process: what it is (Role), and how it is going (Child)."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from hekla.backends.local.processes import read_process

FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.2, 10.0
HEALTHY_AFTER_SECONDS = 30.0
_READ_BYTES = 65536


class Process(Protocol):
    """A process that we started, as `subprocess.Popen` shows it."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None:
        """Its exit status, negative where a signal ended it; None while it runs."""

    def send_signal(self, number: int, /) -> None:
        """To this process, never to another that has its number by now."""


@dataclass(frozen=True)
class Role:
    """What a process is for: how it starts, when it serves, and how it is asked to end."""

    name: str
    start: Callable[[int], Process]
    """Starts it, with its output on the descriptor given."""
    stop_stage: int
    """All of a lower stage have ended before this one is asked to."""
    prepare: Callable[[], None] = lambda: None
    """What must be done before each start."""
    is_ready: Callable[[int], bool] = lambda _pid: True
    """Whether the process with that pid serves."""
    shows: Callable[[str], bool] = lambda _line: True
    """Whether a line of its output is for the terminal as well."""
    stop_signal: signal.Signals = signal.SIGTERM
    last_signal: signal.Signals = signal.SIGKILL
    """For one that does not end within `patience_seconds`."""
    patience_seconds: float = 2.5


class Child:
    """One role's process, and the ones that took its place."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.process: Process | None = None
        self.ready = False
        self.restart_at: float | None = None
        self.deaths = 0
        self.exit_code: int | None = None
        self.output: int | None = None
        self.is_drained = False
        self._delay = FIRST_DELAY_SECONDS
        self._started_at = 0.0
        self._unfinished = b""

    @property
    def runs(self) -> bool:
        """Whether there is a process that has not been found dead."""
        return self.process is not None

    @property
    def identity(self) -> tuple[int, str] | None:
        """Its pid, and when that pid began: together they name it for ever."""
        process = read_process(self.process.pid) if self.process else None
        return (process.pid, process.started) if process else None

    def start(self) -> None:
        """Start it. Raises LaunchRefused, OSError."""
        self.restart_at = None
        self.role.prepare()
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        try:
            self.process = self.role.start(writer)
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        self.output, self.is_drained = reader, False
        self.ready, self._started_at = False, time.monotonic()

    def check_ready(self) -> bool:
        """Whether it serves; asks only until it does."""
        if self.process is not None and not self.ready:
            self.ready = self.role.is_ready(self.process.pid)
        return self.ready

    def lines(self) -> list[str]:
        """What it has written since the last call, in whole lines."""
        if self.output is None:
            return []
        with suppress(BlockingIOError):
            while data := os.read(self.output, _READ_BYTES):
                self._unfinished += data
            self.is_drained = True
        *whole, self._unfinished = self._unfinished.split(b"\n")
        if self._unfinished and (self.is_drained or len(self._unfinished) > _READ_BYTES):
            whole, self._unfinished = [*whole, self._unfinished], b""
        return [line.decode(errors="replace").rstrip("\r") for line in whole]

    def reap(self) -> str | None:
        """How it ended, in words, where it has; then a time for its next start is set."""
        if self.process is None or self.process.poll() is None:
            return None
        self.exit_code = code = self.process.returncode or 0
        self.process, self.ready = None, False
        if time.monotonic() - self._started_at >= HEALTHY_AFTER_SECONDS:
            self._delay = FIRST_DELAY_SECONDS
        self.put_off()
        self.deaths += 1
        return _how(code)

    def put_off(self) -> None:
        """Set the next start, each time further away."""
        self.restart_at = time.monotonic() + self._delay
        self._delay = min(self._delay * 2, LONGEST_DELAY_SECONDS)

    def close(self) -> None:
        """Let go of its output."""
        if self.output is not None:
            os.close(self.output)
            self.output = None

    def signal(self, number: signal.Signals) -> None:
        """To the process, or where it is the last one, to all of its group."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    known = {int(number): number.name for number in signal.Signals}
    return f"was killed by {known.get(-code, f'signal {-code}')}"
