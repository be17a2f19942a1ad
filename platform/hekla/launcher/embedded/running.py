"""Runs a server during a context."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hekla.launcher.embedded.postgres import Postgres
from hekla.launcher.embedded.valkey import Valkey
from hekla.launcher.terminal import LaunchRefused

_READY_SECONDS = 60.0
_STOP_SECONDS = 60.0


@contextmanager
def running(server: Postgres | Valkey, log: int) -> Iterator[None]:
    """Start a server, wait until it accepts connections, and end it after the context.

    Its log goes to the file descriptor `log`. Raises LaunchRefused if it does not start.
    """
    server.prepare()
    process = server.start(log)
    try:
        _wait(server, process)
        yield
    finally:
        process.send_signal(server.stop_signal)
        process.wait(_STOP_SECONDS)


def _wait(server: Postgres | Valkey, process: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + _READY_SECONDS
    while not server.is_ready(process.pid):
        if process.poll() is not None or time.monotonic() > limit:
            raise LaunchRefused(f"{type(server).__name__} does not start on this machine.")
        time.sleep(0.05)
