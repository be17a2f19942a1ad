"""PostgreSQL and Valkey for one measurement, set as for a console that people use: what it answers is kept."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hekla.project.embedded import Postgres, Valkey
from hekla.project.embedded.rundir import run_dir
from hekla.project.terminal import StartRefused

_READY_SECONDS = 60.0
_STOP_SECONDS = 60.0


@contextmanager
def servers() -> Iterator[Path]:
    """Both servers, named in this process's environment, and the folder that holds their data."""
    home = Path(tempfile.mkdtemp(prefix="hekla-bench-"))
    run = run_dir(home)
    postgres, valkey = Postgres(home / "postgres", run), Valkey(run)
    try:
        with ExitStack() as stack, (home / "servers.log").open("ab") as log:
            for server in (postgres, valkey):
                stack.enter_context(_running(server, log.fileno()))
            os.environ |= {"DATABASE_URL": postgres.url, "VALKEY_URL": valkey.url, "HEKLA_HOME": str(home)}
            os.environ |= {"HEKLA_SECRET_KEY": "bench", "DJANGO_SETTINGS_MODULE": "hekla.project.settings"}
            yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _running(server: Postgres | Valkey, log: int) -> Iterator[None]:
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
            raise StartRefused(f"{type(server).__name__} does not start on this machine.")
        time.sleep(0.05)
