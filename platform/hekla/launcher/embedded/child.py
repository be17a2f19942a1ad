"""Starts child processes that end with their parent, however the parent ends.

Each child leads its own session, so Ctrl-C in a terminal reaches only the parent, which then stops its children in
order. If the parent is killed, the kernel sends each child its last signal (Linux only; elsewhere the next start finds
and ends the children).
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def spawn(
    argv: Sequence[str | Path],
    *,
    output: int,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user: int | None = None,
    inherited: Collection[int] = (),
    last_signal: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start `argv` with both output streams on the file descriptor `output`. `inherited`: further descriptors.

    Call it from the main thread: the kernel treats the end of the forking thread as the end of the parent.
    """
    return subprocess.Popen(
        [str(part) for part in argv],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=env,
        cwd=folder,
        user=user,
        group=user,
        extra_groups=[] if user is not None else None,
        start_new_session=True,
        pass_fds=inherited,
        preexec_fn=partial(follow_parent, os.getpid(), last_signal),  # noqa: PLW1509  (one system call, no threads)
    )


def follow_parent(parent: int, last_signal: signal.Signals) -> None:
    """In a newly forked process: request this signal from the kernel when the parent ends."""
    if _libc is None:
        return
    _libc.prctl(_PR_SET_PDEATHSIG, int(last_signal))
    if os.getppid() != parent:  # the parent died before the request
        os._exit(1)
