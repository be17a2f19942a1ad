"""Our Python processes as copies of this one, once it has loaded what they all need (the prefork model of servers).

What is loaded once is in memory once: copies share every page that none of them writes to. And a process that
crashed is back at once. Copies are made on Linux only; on macOS system libraries do not survive a copy, so each process
loads for itself there.

What copies: this process has one thread and no connection to anything when it copies itself, and it does none of
their work, so that each copy begins clean. Nothing of it may unwind the stack of the original below it, which holds
files and servers; that is why a copy ends without coming back.
"""

import contextlib
import gc
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import NoReturn

from hekla.launcher.embedded import spawn
from hekla.launcher.embedded.child import follow_parent
from hekla.launcher.up.child import Process
from hekla.launcher.up.titles import set_title

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
_INTERRUPTED = 130
_THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""numpy's library makes a thread for each core when it is loaded, which no copy would have. The engine uses none."""


class Launcher:
    """Starts `python -m MODULE ARGUMENTS…`, each with its output on a descriptor: copies, once `load` was called."""

    def __init__(self) -> None:
        self._loaded_with: Mapping[str, str] | None = None

    def load(self, env: Mapping[str, str]) -> None:
        """Load what the console needs with this environment, where copies can be made of it. Once is enough."""
        if sys.platform != "linux" or self._loaded_with is not None:
            return
        os.environ.update({**_THREADS, **env})
        gc.disable()  # all of it stays, so there is no use in looking for garbage among it
        sys.dont_write_bytecode = False  # it would be made again at each start
        from hekla.launcher.up import preload  # noqa: PLC0415  (this is the moment; nothing of it may be loaded before)

        preload.load_console()
        gc.freeze()
        self._loaded_with = env

    def load_workers(self) -> None:
        """Load what the workers need besides: what is copied from now on has it."""
        if self._loaded_with is None:
            return
        from hekla.launcher.up import preload  # noqa: PLC0415  (as in `load`)

        preload.load_workers()
        gc.freeze()

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str], output: int) -> Process:
        """Start it; `name` is for those who look at the list of processes.

        One whose environment differs loads for itself: the settings that are loaded are not its own. So does each
        where this process has other threads, which a copy would lack.
        """
        if env != self._loaded_with or threading.active_count() > 1:
            return spawn([sys.executable, "-m", *argv], output=output, env=env)
        return _copy(name, argv, env, output)


class Copy:
    """A copy of this process, as `subprocess.Popen` shows a process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, negative where a signal ended it; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """To this process, never to another that has its number by now."""
        if self.poll() is None:
            os.kill(self.pid, number)


def _copy(name: str, argv: Sequence[str], env: Mapping[str, str], output: int) -> Copy:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    parent = os.getpid()
    old = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # one that comes now must find the copy's own handlers
    try:
        pid = os.fork()
        if pid == 0:
            _live(name, argv, env, output, parent, old)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
    return Copy(pid)


def _live(
    name: str, argv: Sequence[str], env: Mapping[str, str], output: int, parent: int, mask: set[int | signal.Signals]
) -> NoReturn:
    """The life of a copy."""
    code = 1
    try:
        os.setsid()
        follow_parent(parent, signal.SIGKILL)
        _forget_signals(mask)
        _take_files(output)
        os.environ.clear()
        os.environ.update(env)
        set_title(f"hekla: {name}")
        gc.enable()
        sys.argv = list(argv)
        runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = _code(end.code)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BaseException:
        traceback.print_exc()
    finally:
        _end(code)


def _forget_signals(mask: set[int | signal.Signals]) -> None:
    signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _take_files(output: int) -> None:
    """Both output streams go to `output`. What else the original has open is let go of, its lock among it.

    Nothing is closed: objects that we inherited would close the same number once more when it is somebody else's.
    """
    os.dup2(output, sys.__stdout__.fileno() if sys.__stdout__ else 1)
    os.dup2(output, 2)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in [int(name) for name in os.listdir("/proc/self/fd")]:
        if number not in {1, 2, nothing}:
            with contextlib.suppress(OSError):  # the one that listed them
                os.fstat(number)
                os.dup2(nothing, number, inheritable=False)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _code(status: object) -> int:
    if status is None or isinstance(status, int):
        return status or 0
    print(status, file=sys.stderr)
    return 1


def _end(code: int) -> NoReturn:
    """As an interpreter ends, but for the files and objects of the original."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(code)
