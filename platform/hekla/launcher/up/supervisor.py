"""Supervises the processes of one Hekla: restarts them, collects their output, stops them in order.

One thread with one loop: every event (output, the end of a process, Ctrl-C, a timer) wakes the same wait. The first
signal requests an orderly stop, the second one an immediate stop.
"""

import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType, TracebackType

from hekla.backends.local.processes import read_process
from hekla.launcher.terminal import LaunchRefused
from hekla.launcher.up.child import Child, Process, Role
from hekla.launcher.up.journal import Journal

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LONGEST_WAIT_SECONDS = 5.0
"""Output, signals and the ends of processes wake the supervisor earlier; heartbeats and the disk do not."""
_POLL_SECONDS = 0.05
_LAST_SECONDS = 5.0
_RETIRED_SECONDS = 30.0


class Stopped(Exception):
    """A signal requested the stop."""


class CommandFailed(LaunchRefused):
    """A command ended with this exit code and wrote these lines."""

    def __init__(self, name: str, exit_code: int | None, lines: list[str]) -> None:
        super().__init__(f"The step {name!r} did not succeed; what it said stands above.")
        self.exit_code, self.lines = exit_code, lines


class Supervisor:
    """A context manager. Leaving the context ends every process that it started."""

    def __init__(self, journal: Journal, record: Path) -> None:
        self.journal = journal
        self._record = record
        self._children: dict[str, Child] = {}
        self._selector = selectors.DefaultSelector()
        self._signals = 0
        self._stopping = False

    def __enter__(self) -> "Supervisor":
        self._woken, waker = os.pipe()
        for end in (self._woken, waker):
            os.set_blocking(end, False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._waker = waker
        self._handlers = {number: signal.signal(number, self._count) for number in _ENDING}
        self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        self._old_waker = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        signal.set_wakeup_fd(self._old_waker)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._selector.close()
        os.close(self._woken)
        os.close(self._waker)

    def end_leftovers(self) -> None:
        """End processes that an earlier Hekla on this data folder left, if the kernel has not ended them."""
        for pid, started in reversed(self._recorded()):
            process = read_process(pid)
            if process is None or process.started != started:
                continue
            self.journal.say(f"Ending process {pid}, which an earlier start left behind")
            os.kill(pid, signal.SIGTERM)
            limit = time.monotonic() + _LAST_SECONDS
            while (process := read_process(pid)) and process.started == started:
                if time.monotonic() > limit:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(_POLL_SECONDS)

    def add(self, role: Role) -> Child:
        """Start a process, and restart it whenever it ends. Raises LaunchRefused."""
        child = self._children[role.name] = Child(role)
        self._start(child)
        return child

    def retire(self, child: Child) -> None:
        """End a process for good, and give it time to finish what it began: another one has taken over."""
        child.retire(_RETIRED_SECONDS)
        if not child.runs:  # it had just died
            self._forget(child)

    def run_through(self, steps: Iterable[object]) -> None:
        """Take these short steps while supervising. Raises Stopped."""
        for _step in steps:
            if self._signals:
                raise Stopped
            self._turn(0.0)

    def run_until(self, holds: Callable[[], bool], seconds: float = float("inf")) -> bool:
        """Supervise until the condition holds. False after `seconds`. Raises Stopped."""
        limit = time.monotonic() + seconds
        while not holds():
            if self._signals:
                raise Stopped
            if time.monotonic() > limit:
                return False
            self._turn(min(_POLL_SECONDS, max(0.0, limit - time.monotonic())))
        return True

    def run_forever(self, every_turn: Callable[[], None]) -> None:
        """Supervise until a signal. Raises Stopped."""
        while not self._signals:
            every_turn()
            self._turn(_LONGEST_WAIT_SECONDS)
        raise Stopped

    def run_once(
        self, name: str, start: Callable[[int], Process], tell: Callable[[str], None] = lambda _line: None
    ) -> list[str]:
        """Run a command to its end while supervising the others. Returns its output lines; `tell` gets each at once.

        Only the output of a failed command is logged, because it can contain secrets. Raises CommandFailed, Stopped.
        """
        lines: list[str] = []
        child = Child(Role(name, start, stop_stage=0))
        child.start()

        def read() -> None:
            for line in child.lines():
                lines.append(line)
                tell(line)

        def has_ended() -> bool:
            read()
            return child.reap() is not None

        try:
            self.run_until(has_ended)
            read()
        finally:
            child.signal(signal.SIGKILL)
            child.close()
        if child.exit_code != 0:
            for line in lines:
                self.journal.take(name, line)
            raise CommandFailed(name, child.exit_code, lines)
        return lines

    def stop(self) -> None:
        """Stop all processes by stage. Kill those that do not end in time, and all after a second signal."""
        self._stopping = True
        signals_before = self._signals
        for stage in sorted({child.role.stop_stage for child in self._children.values()}):
            running = [child for child in self._children.values() if child.role.stop_stage == stage]
            for child in running:
                child.signal(child.role.stop_signal)
            patience = max(child.role.patience_seconds for child in running)
            self._wait_for_end(running, patience, lambda: self._signals > max(signals_before, 1))
            for child in running:
                child.signal(child.role.last_signal)
            self._wait_for_end(running, _LAST_SECONDS, lambda: False)
            for child in running:
                child.signal(signal.SIGKILL)
        self._write_record()

    def _wait_for_end(self, children: Sequence[Child], seconds: float, is_cut_short: Callable[[], bool]) -> None:
        limit = time.monotonic() + seconds
        while any(child.runs for child in children) and time.monotonic() < limit and not is_cut_short():
            self._turn(_POLL_SECONDS)

    def _turn(self, longest_seconds: float) -> None:
        """Wait for an event or `longest_seconds`, then handle output, ended processes and due restarts."""
        for _key, _events in self._selector.select(self._wait_seconds(longest_seconds)):
            self._drain_wakes()
        for child in list(self._children.values()):
            self._gather(child)
            if how := child.reap():
                self._bury(child, how)
            if child.restart_at is not None and not self._stopping and time.monotonic() >= child.restart_at:
                self._start_again(child)
            self._note_ready(child)
            if not self._stopping:
                self._replace_silent(child)

    def _wait_seconds(self, longest: float) -> float:
        if any(child.runs and not child.ready for child in self._children.values()):
            longest = min(longest, _POLL_SECONDS)
        now = time.monotonic()
        times = [child.restart_at - now for child in self._children.values() if child.restart_at is not None]
        kills = [child.kill_at - now for child in self._children.values() if child.kill_at is not None]
        times += [max(_POLL_SECONDS, seconds) for seconds in kills]  # a process that was killed takes a moment to end
        return max(0.0, min([longest, *times]))

    def _replace_silent(self, child: Child) -> None:
        """End a process that hangs, first politely; it is started again like any that has ended."""
        if child.kill_at is not None:
            if time.monotonic() >= child.kill_at:
                child.signal(signal.SIGKILL)
        elif child.is_silent():
            self.journal.say(
                f"{child.role.name} has not reported for {child.role.silence_seconds:.0f} s: it is replaced"
            )
            child.signal(child.role.stop_signal)
            child.kill_at = time.monotonic() + child.role.patience_seconds

    def _drain_wakes(self) -> None:
        try:
            os.read(self._woken, 4096)
        except BlockingIOError:
            return

    def _start(self, child: Child) -> None:
        child.start()
        if child.output is not None:
            self._selector.register(child.output, selectors.EVENT_READ)
        self._write_record()

    def _start_again(self, child: Child) -> None:
        try:
            self._start(child)
        except (LaunchRefused, OSError) as error:
            self.journal.say(f"{child.role.name} does not start: {error}")
            child.put_off()

    def _note_ready(self, child: Child) -> None:
        if child.runs and not child.ready and child.check_ready() and child.deaths and not self._stopping:
            self.journal.say(f"{child.role.name} is back")

    def _gather(self, child: Child) -> None:
        for line in child.lines():
            self.journal.take(child.role.name, line, show=child.role.shows(line))
        if child.is_drained:
            self._let_go(child)

    def _let_go(self, child: Child) -> None:
        if child.output is not None:
            self._selector.unregister(child.output)
        child.close()

    def _bury(self, child: Child, how: str) -> None:
        self._gather(child)
        self._let_go(child)
        if child.is_retired:
            self._forget(child)
        if not self._stopping and child.restart_at is not None:
            delay = max(0.0, child.restart_at - time.monotonic())
            self.journal.say(f"{child.role.name} {how}; it is started again in {delay:.1f} s")

    def _forget(self, child: Child) -> None:
        self._children.pop(child.role.name, None)
        self._write_record()

    def _count(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1

    # The list of running processes, for people, and for the next start to end processes that outlive this one

    def _write_record(self) -> None:
        running = {name: child.identity for name, child in self._children.items() if child.runs}
        try:
            written = self._record.with_suffix(".new")
            written.write_text(json.dumps(running), encoding="utf-8")
            written.replace(self._record)
        except OSError as error:
            self.journal.say(f"The list of processes could not be written: {error}")

    def _recorded(self) -> list[tuple[int, str]]:
        try:
            listed = json.loads(self._record.read_text(encoding="utf-8"))
            return [(int(pid), str(started)) for pid, started in filter(None, listed.values())]
        except (OSError, ValueError, TypeError, AttributeError):
            return []
