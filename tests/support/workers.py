"""Hekla's worker processes, real ones, on the database of the test that starts them; tests kill them at will."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from hekla.launcher.embedded import spawn

CHECKOUT = Path(__file__).resolve().parents[2]
_CELERY = (sys.executable, "-m", "celery", "--quiet", "-A", "hekla.project.celery")
_SHAPE = ("--pool", "threads", "--loglevel", "warning", "--without-gossip", "--without-mingle", "--without-heartbeat")
PATIENCE_SECONDS = 30.0


class Workers:
    """Two workers that reconcile clusters, one for all other work, and the beat. Tests restart the killed ones."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "workers.log"
        schedule = ("beat", "--schedule", str(folder / "beat"), "--pidfile=", "--loglevel", "warning")
        self._commands = {
            "control-1": _worker("control", "control-1"),
            "control-2": _worker("control", "control-2"),
            "default": _worker("default", "default"),
            "beat": (*_CELERY, *schedule),
        }
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(CHECKOUT / "platform"),
            "PYTHONWARNINGS": "ignore",
            "DATABASE_URL": _test_database(),
            "VALKEY_URL": os.environ["VALKEY_URL"],
            "HEKLA_HOME": str(settings.HEKLA_HOME),
            "HEKLA_SECRET_KEY": "test",
            "HEKLA_CHECK_ENGINE": "1",
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def roles(self) -> list[str]:
        """The processes that a test can kill."""
        return list(self._commands)

    def start(self, role: str) -> None:
        """Starts the process; it is ready some seconds later."""
        with self._log.open("ab") as log:
            env = {**self.environment, "PGAPPNAME": role}  # shows in the database who wrote
            self._processes[role] = spawn(self._commands[role], output=log.fileno(), env=env)

    def kill(self, role: str) -> None:
        """SIGKILL: the process can finish nothing."""
        self._processes[role].kill()
        self._processes[role].wait(PATIENCE_SECONDS)

    def holders(self) -> dict[str, str]:
        """The processes by their name as lease holders."""
        host = socket.gethostname()
        return {f"{host}:{process.pid}": role for role, process in self._processes.items()}

    def pause(self, role: str) -> None:
        """SIGSTOP: the process stands still without noticing."""
        self._processes[role].send_signal(signal.SIGSTOP)

    def resume(self, role: str) -> None:
        """SIGCONT: the process continues."""
        self._processes[role].send_signal(signal.SIGCONT)

    def output(self) -> str:
        """The output of all processes, for a failing test."""
        return self._log.read_text(errors="replace")

    def stacks(self) -> str:
        """The stack of each thread of each worker, for a failing test: Celery logs it on a signal."""
        before = len(self.output())
        for role in ("control-1", "control-2"):
            self._processes[role].send_signal(signal.SIGUSR1)
        time.sleep(2)
        return self.output()[before:]

    @contextmanager
    def at_work(self) -> Iterator["Workers"]:
        """Runs all of them until the end of the block."""
        try:
            for role in self._commands:
                self.start(role)
            yield self
        finally:
            for process in self._processes.values():
                process.send_signal(signal.SIGCONT)
                process.terminate()
            for process in self._processes.values():
                _end(process)


def _worker(queue: str, name: str) -> tuple[str, ...]:
    return (*_CELERY, "worker", "--queues", queue, "--concurrency", "4", "--hostname", f"{name}@%h", *_SHAPE)


def _test_database() -> str:
    """The URL of this run's server with the name of the test database."""
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()


def _end(process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait(PATIENCE_SECONDS)
