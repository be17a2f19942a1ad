"""A supervised process: its definition (Role) and its state (Child)."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hekla.backends.local.processes import read_process

FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.2, 10.0
HEALTHY_AFTER_SECONDS = 30.0
_READ_BYTES = 65536


class Process(Protocol):
    """A started process, with the interface of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None:
        """The exit status, negative after a signal; None while it runs."""

    def send_signal(self, number: int, /) -> None:
        """Signal this process, never a later process with the same pid."""


@dataclass(frozen=True)
class Role:
    """The definition of a process: how it starts, when it is ready, and how it is stopped."""

    name: str
    start: Callable[[int], Process]
    """Starts the process, with its output on this file descriptor."""
    stop_stage: int
    """Order of the stop: processes of a stage are stopped after all of the lower stages have ended."""
    prepare: Callable[[], None] = lambda: None
    """Runs before each start."""
    is_ready: Callable[[int], bool] = lambda _pid: True
    """Whether the process with this pid is ready."""
    shows: Callable[[str], bool] = lambda _line: True
    """Whether to show a line of its output on the terminal too."""
    stop_signal: signal.Signals = signal.SIGTERM
    last_signal: signal.Signals = signal.SIGKILL
    """The signal if the process does not end within `patience_seconds`."""
    patience_seconds: float = 2.5
    heartbeat: Path | None = None
    """A file that the process touches as long as it works; the supervisor replaces a process that stops doing so."""
    silence_seconds: float = 40.0
    """How long the file may stay untouched, once the process has touched it. The supervisor looks every few seconds."""


class Child:
    """The present process of a role, restarted after its end."""

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
        self.is_retired = False
        """Whether it ends for good, because another process has taken over."""
        self.kill_at: float | None = None
        """When the supervisor kills the process, because it hangs."""
        self._beat: tuple[int, float] | None = None

    @property
    def runs(self) -> bool:
        """Whether there is a process that has not been reaped."""
        return self.process is not None

    @property
    def identity(self) -> tuple[int, str] | None:
        """The pid and its start time, which together identify the process uniquely."""
        process = read_process(self.process.pid) if self.process else None
        return (process.pid, process.started) if process else None

    def start(self) -> None:
        """Start the process. Raises LaunchRefused, OSError."""
        self.restart_at = None
        self.role.prepare()
        self.kill_at = self._beat = None
        if self.role.heartbeat is not None:
            self.role.heartbeat.unlink(missing_ok=True)
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
        """Whether the process is ready. Checks only until it is."""
        if self.process is not None and not self.ready:
            self.ready = self.role.is_ready(self.process.pid)
        return self.ready

    def is_silent(self) -> bool:
        """Whether the process has stopped touching its heartbeat file: changes count, not the clock of the file."""
        try:
            touched = os.stat(self.role.heartbeat).st_mtime_ns if self.role.heartbeat else None
        except OSError:  # not touched yet
            touched = None
        if self.process is None or touched is None:
            return False
        if self._beat is None or self._beat[0] != touched:
            self._beat = touched, time.monotonic()
        return time.monotonic() - self._beat[1] > self.role.silence_seconds

    def lines(self) -> list[str]:
        """The complete lines of output since the last call."""
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
        """If the process has ended, schedule its restart and return how it ended; otherwise None."""
        if self.process is None or self.process.poll() is None:
            return None
        self.exit_code = code = self.process.returncode or 0
        self.process, self.ready = None, False
        if time.monotonic() - self._started_at >= HEALTHY_AFTER_SECONDS:
            self._delay = FIRST_DELAY_SECONDS
        if not self.is_retired:
            self.put_off()
        self.deaths += 1
        return _how(code)

    def retire(self, seconds: float) -> None:
        """Request its end for good. After `seconds` the supervisor kills it."""
        self.is_retired, self.restart_at, self.kill_at = True, None, time.monotonic() + seconds
        self.signal(self.role.stop_signal)

    def put_off(self) -> None:
        """Schedule the next start, with exponential backoff."""
        self.restart_at = time.monotonic() + self._delay
        self._delay = min(self._delay * 2, LONGEST_DELAY_SECONDS)

    def close(self) -> None:
        """Close the pipe of its output."""
        if self.output is not None:
            os.close(self.output)
            self.output = None

    def signal(self, number: signal.Signals) -> None:
        """Signal the process; SIGKILL goes to its whole process group."""
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
