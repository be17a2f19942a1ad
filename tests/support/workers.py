"""Hekla's worker processes, real ones, on the database of the test that starts them; tests kill them at will."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from django.conf import settings
from django.db import connection

CHECKOUT = Path(__file__).resolve().parents[2]
_CELERY = ("celery", "--quiet", "-A", "hekla.project.celery")
_FORKS = (sys.executable, "-m", "tests.support.worker_forks")
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
            "PYTHONPATH": f"{CHECKOUT / 'platform'}{os.pathsep}{CHECKOUT}",
            "DJANGO_SETTINGS_MODULE": "hekla.project.settings",
            "OPENBLAS_NUM_THREADS": "1",  # a fork would lack the others
            "PYTHONWARNINGS": "ignore",
            "DATABASE_URL": _test_database(),
            "VALKEY_URL": os.environ["VALKEY_URL"],
            "HEKLA_HOME": str(settings.HEKLA_HOME),
            "HEKLA_SECRET_KEY": "test",
            "HEKLA_CHECK_ENGINE": "1",
        }
        self._forks: subprocess.Popen[str]
        self._processes: dict[str, psutil.Process] = {}

    @property
    def roles(self) -> list[str]:
        """The processes that a test can kill."""
        return list(self._commands)

    def start(self, role: str) -> None:
        """Starts the process; it is ready a moment later."""
        more = {"PGAPPNAME": role}  # shows in the database who wrote
        self._forks.stdin.write(json.dumps([more, self._commands[role], str(self._log)]) + "\n")
        self._forks.stdin.flush()
        self._processes[role] = psutil.Process(int(self._forks.stdout.readline()))

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
        self._processes[role].suspend()

    def resume(self, role: str) -> None:
        """SIGCONT: the process continues."""
        self._processes[role].resume()

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
        pipe = subprocess.PIPE
        with (
            self._log.open("ab") as log,
            subprocess.Popen(_FORKS, stdin=pipe, stdout=pipe, stderr=log, env=self.environment, text=True) as forks,
        ):
            self._forks = forks
            try:
                for role in self._commands:
                    self.start(role)
                yield self
            finally:
                _end([process for process in self._processes.values() if process.is_running()])


def _worker(queue: str, name: str) -> tuple[str, ...]:
    return (*_CELERY, "worker", "--queues", queue, "--concurrency", "4", "--hostname", f"{name}@%h", *_SHAPE)


def _test_database() -> str:
    """The URL of this run's server with the name of the test database."""
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()


def _end(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        process.resume()
        process.terminate()
    _gone, alive = psutil.wait_procs(processes, PATIENCE_SECONDS)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, PATIENCE_SECONDS)
