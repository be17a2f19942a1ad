"""The web process of a measurement, as under `manage.py up`."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import psutil

from hekla.launcher.terminal import LaunchRefused
from hekla.launcher.up.roles import Address, web

HOST = "127.0.0.1"
_START_SECONDS = _STOP_SECONDS = 60.0


class Server:
    """The web process."""

    def __init__(self, address: Address, process: subprocess.Popen[bytes]) -> None:
        self.address, self.process = address, process
        self._known = psutil.Process(process.pid)

    @property
    def memory(self) -> int:
        """Resident memory in bytes."""
        return int(self._known.memory_info().rss)

    @property
    def cpu(self) -> float:
        """CPU seconds used so far."""
        times = self._known.cpu_times()
        return float(times.user + times.system)


@contextmanager
def web_server(home: Path) -> Iterator[Server]:
    """Start the web process on a free port. Raises LaunchRefused."""
    address = Address(HOST, _free_port())
    env = {**os.environ, "HEKLA_PUBLIC_URL": f"http://{HOST}:{address.port}"}
    with (home / "web.log").open("ab") as log:
        process = cast("subprocess.Popen[bytes]", web(address, env).start(log.fileno()))  # without a launcher
    try:
        limit = time.monotonic() + _START_SECONDS
        while not address.answers():
            if process.poll() is not None or time.monotonic() > limit:
                raise LaunchRefused("The web server does not start on this machine.")
            time.sleep(0.1)
        yield Server(address, process)
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])
