"""A pytest plugin: starts PostgreSQL and Valkey for this run, before Django reads its settings.

With DATABASE_URL and VALKEY_URL set, the tests run on those servers instead. The servers end with pytest, even if it is
killed. In a run on several cores (`-n`) each worker has servers of its own; the process that distributes the tests
connects to none.
"""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from tests.support.once import FOLDER

from hekla.launcher.embedded import Postgres, Valkey
from hekla.launcher.embedded.rundir import run_dir
from hekla.launcher.up.template import template_folder

READY_WITHIN_SECONDS = 60.0
_NOWHERE = {"DATABASE_URL": "postgresql:///none?host=/nonexistent", "VALKEY_URL": "unix:///nonexistent?db=0"}


class Servers:
    """The servers of this run."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="hekla-test-"))
        self.has_tables = False
        self._started: list[tuple[Postgres | Valkey, subprocess.Popen[bytes]]] = []
        self._log = self.home / "servers.log"

    def start(self) -> None:
        """Starts the servers that the environment does not name, and sets their addresses there."""
        os.environ.setdefault("HEKLA_HOME", str(self.home))
        os.environ.setdefault("HEKLA_SECRET_KEY", "test")
        os.environ.setdefault("HEKLA_TRIES_A_MINUTE", "1000000")  # the tests try passwords more often than a person
        os.environ.setdefault("HEKLA_RESTART_BACKOFF", "0")  # restarts follow at once, unless a test is about this
        run = run_dir(self.home)
        if "DATABASE_URL" not in os.environ:
            postgres = Postgres(self.home / "postgres", run, transient=True, template=template_folder())
            self._launch(postgres)
            self.has_tables = template_folder().is_dir()
            os.environ["DATABASE_URL"] = postgres.url
        if "VALKEY_URL" not in os.environ:
            valkey = Valkey(run)
            self._launch(valkey)
            os.environ["VALKEY_URL"] = valkey.url
        for server, process in self._started:
            self._wait(server, process)

    def stop(self) -> None:
        """Ends the servers and removes their data."""
        for server, process in reversed(self._started):
            process.send_signal(server.stop_signal)
            process.wait(timeout=30)
        shutil.rmtree(self.home, ignore_errors=True)

    def _launch(self, server: Postgres | Valkey) -> None:
        server.prepare()
        with self._log.open("ab") as log:
            self._started.append((server, server.start(log.fileno())))

    def _wait(self, server: Postgres | Valkey, process: subprocess.Popen[bytes]) -> None:
        limit = time.monotonic() + READY_WITHIN_SECONDS
        while not server.is_ready(process.pid):
            if process.poll() is not None or time.monotonic() > limit:
                raise pytest.UsageError(f"{type(server).__name__} does not start:\n{self._log.read_text()}")
            time.sleep(0.02)


_servers = Servers()


def has_tables() -> bool:
    """Whether the database of this run, which is not that of the tests, has the tables of this code."""
    return _servers.has_tables


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """The first hook of a run, before pytest-django reads the settings."""
    if early_config.known_args_namespace.numprocesses and "PYTEST_XDIST_WORKER" not in os.environ:
        _set_no_servers()
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="hekla-shared-")
        early_config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(FOLDER), ignore_errors=True))
        return
    _servers.start()
    early_config.add_cleanup(_servers.stop)


def _set_no_servers() -> None:
    """For the process that distributes the tests: it reads the settings too."""
    if names := sorted(_NOWHERE.keys() & os.environ.keys()):
        raise pytest.UsageError(f"Workers would share the server of {' and '.join(names)}: run without -n.")
    os.environ.update(_NOWHERE, HEKLA_SECRET_KEY="test")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart() -> None:
    """Workers inherit the environment, and start the servers that it does not name."""
    for name, nowhere in _NOWHERE.items():
        if os.environ.get(name) == nowhere:
            del os.environ[name]
