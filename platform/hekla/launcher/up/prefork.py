"""Starts Hekla's Python processes by forking this process, after it has loaded their common code (prefork model).

Loaded code is in memory once: forks share all memory pages that none of them writes to. A crashed process is back at
once. Only Linux forks; on macOS system libraries do not survive a fork, so each process loads its own code.

Each fork starts clean: when this process forks, it has one thread and no connections, and it does none of the work of
its children. A fork must not unwind the stack of the original, which holds files and servers. So it ends with
`os._exit` and never returns.
"""

import contextlib
import gc
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NoReturn

from hekla.launcher.embedded import spawn
from hekla.launcher.embedded.child import follow_parent
from hekla.launcher.up.child import Process
from hekla.launcher.up.titles import set_title

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
_INTERRUPTED = 130
_THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""numpy's libraries start a thread per core when loaded, which a fork would lack. The engine needs none of them."""


class Launcher:
    """Starts `python -m MODULE ARGUMENTS…` with the output on a file descriptor. After `load` it forks."""

    def __init__(self) -> None:
        self._loaded_with: Mapping[str, str] | None = None

    def load(self, env: Mapping[str, str]) -> None:
        """Load the console's code with this environment, once and only on Linux."""
        if sys.platform != "linux" or self._loaded_with is not None:
            return
        os.environ.update({**_THREADS, **env})
        gc.disable()  # all loaded objects stay, so a collection is useless
        sys.dont_write_bytecode = False  # without bytecode each start would compile again
        from hekla.launcher.up import preload  # noqa: PLC0415  (must not be loaded earlier)

        preload.load_console()
        gc.freeze()
        self._loaded_with = env

    @property
    def is_loaded(self) -> bool:
        """Whether it forks."""
        return self._loaded_with is not None

    def load_pages(self) -> Iterator[None]:
        """Load the rest of the console's code, for later forks, and pause between modules."""
        if self._loaded_with is None:
            return
        from hekla.launcher.up import preload  # noqa: PLC0415  (as in `load`)

        yield from preload.load_pages()
        gc.freeze()

    def load_workers(self) -> None:
        """Load the additional code of the workers, for later forks."""
        if self._loaded_with is None:
            return
        from hekla.launcher.up import preload  # noqa: PLC0415  (as in `load`)

        preload.load_workers()
        gc.freeze()

    def start(
        self, name: str, argv: Sequence[str], env: Mapping[str, str], output: int, inherited: Collection[int] = ()
    ) -> Process:
        """Start a process. `name`: its title in process lists; `inherited`: the descriptors that it inherits.

        A process with another environment is not forked, because it needs other settings. Nothing is forked while this
        process has other threads, which a fork would lack.
        """
        if env != self._loaded_with or threading.active_count() > 1:
            return spawn([sys.executable, "-m", *argv], output=output, env=env, inherited=inherited)
        return _copy(name, argv, env, output, inherited)


class Copy:
    """A fork of this process, with the interface of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative after a signal; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal this process, never a later process with the same pid."""
        if self.poll() is None:
            os.kill(self.pid, number)


def _copy(name: str, argv: Sequence[str], env: Mapping[str, str], output: int, inherited: Collection[int]) -> Copy:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    parent = os.getpid()
    old = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # a signal now must find the handlers of the fork
    try:
        pid = os.fork()
        if pid == 0:
            _live(name, argv, env, partial(_take_files, output, inherited), parent, old)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
    return Copy(pid)


def _live(
    name: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    take_files: Callable[[], None],
    parent: int,
    mask: set[int | signal.Signals],
) -> NoReturn:
    """Run the module in the fork, and exit."""
    code = 1
    try:
        os.setsid()
        follow_parent(parent, signal.SIGKILL)
        _forget_signals(mask)
        take_files()
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


def _take_files(output: int, inherited: Collection[int]) -> None:
    """Redirect both output streams to `output`, and release the other files of the original, but not `inherited`.

    They are replaced by /dev/null, not closed: inherited objects would close the same number again, when it may belong
    to another file.
    """
    os.dup2(output, sys.__stdout__.fileno() if sys.__stdout__ else 1)
    os.dup2(output, 2)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in [int(name) for name in os.listdir("/proc/self/fd")]:
        if number not in {1, 2, nothing, *inherited}:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself
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
    """Exit like an interpreter, but leave the files and objects of the original alone."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(code)
