"""PostgreSQL as a child process: creation of its data folder, start, readiness, and clean-up after a crash.

The data folder is created under another name and renamed, so an interrupted first start leaves nothing incomplete.
Settings are passed at each start and not stored, so an old folder gets the settings of a newer Hekla.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from hekla.backends.local.processes import process_table
from hekla.launcher.embedded.child import spawn
from hekla.launcher.embedded.identity import ProcessIdentity, find_identity
from hekla.launcher.embedded.programs import postgres_programs, postgres_version
from hekla.launcher.terminal import LaunchRefused

NAME = "hekla"  # name of the database and of its owner
_BUILTIN_LOCALES = 17  # the first version with the builtin locale provider
_STATUS_LINE = 7  # line of postmaster.pid, from 0
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "max_parallel_workers_per_gather": "0",  # parallel plans need more of /dev/shm than containers have
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "unix_socket_permissions": "0700",
    # "off" would lose acknowledged submissions if PostgreSQL is killed right afterwards.
    "synchronous_commit": "on",
}
_TRANSIENT = {"fsync": "off", "full_page_writes": "off"}


@dataclass(frozen=True)
class Postgres:
    """A server with its data in the folder `data` and its socket in the folder `run`.

    `transient`: the data may be lost in a crash. `template`: a data folder to copy for a new one; None: use initdb.
    """

    data: Path
    run: Path
    transient: bool = False
    template: Path | None = None
    programs: Path = field(default_factory=postgres_programs)
    stop_signal = signal.SIGINT  # "fast": sessions end, nothing is lost

    @cached_property
    def _identity(self) -> ProcessIdentity:
        self.data.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return find_identity(self.programs / "postgres", self.data.parent)

    @property
    def url(self) -> str:
        """The DATABASE_URL of this server."""
        return self.url_at(self.run)

    @staticmethod
    def url_at(run: Path) -> str:
        """The DATABASE_URL of a server with its socket in `run`."""
        return f"postgresql:///{NAME}?host={quote(str(run))}&user={NAME}"

    def prepare(self) -> None:
        """Create a missing data folder. End processes that an earlier run left. Raises LaunchRefused."""
        version = postgres_version(self.programs)
        self._identity.let_through(self.data.parent)
        if self.data.exists():
            self._check_version(version)
            self._clean_up()
        else:
            self._make(version)
        self._identity.own(self.data, self.run)

    def start(self, output: int) -> subprocess.Popen[bytes]:
        """Start the server, with its log on the file descriptor `output`."""
        settings = _SETTINGS | {"unix_socket_directories": str(self.run)} | (_TRANSIENT if self.transient else {})
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        argv: list[str | Path] = [*self._identity.prefix, self.programs / "postgres", "-D", self.data, *options]
        last = signal.SIGQUIT if self.transient else self.stop_signal
        return spawn(argv, output=output, env=_environment(), user=self._identity.user, last_signal=last)

    def is_ready(self, pid: int) -> bool:
        """Whether the server with this pid accepts connections."""
        lines = self._pid_file()
        return len(lines) > _STATUS_LINE and lines[0].strip() == str(pid) and lines[_STATUS_LINE].strip() == "ready"

    def _pid_file(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []

    def _check_version(self, version: int) -> None:
        try:
            made_by = (self.data / "PG_VERSION").read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            raise LaunchRefused(
                f"{self.data} is not a database of PostgreSQL. Choose another folder with --data."
            ) from None
        if made_by != str(version):
            raise LaunchRefused(
                f"The data in {self.data} was written by PostgreSQL {made_by}, and this Hekla brings PostgreSQL "
                f"{version}. Start the Hekla that wrote it, or move it over with pg_upgrade (in {self.programs}), or "
                "begin anew with --reset."
            )

    def _make(self, version: int) -> None:
        making = self.data.with_name(self.data.name + ".making")
        shutil.rmtree(making, ignore_errors=True)
        if self.template is not None and self.template.is_dir():
            shutil.copytree(self.template, making)
            self._identity.own(making)
        else:
            self._make_empty(making, version)
        if not self.transient:
            os.sync()
        making.rename(self.data)

    def _make_empty(self, making: Path, version: int) -> None:
        making.mkdir(mode=0o700)
        self._identity.own(making)
        locale = (
            ["--locale-provider=builtin", "--locale=C.UTF-8"] if version >= _BUILTIN_LOCALES else ["--locale=C.UTF-8"]
        )
        options = ["--auth=trust", "--encoding=UTF8", f"--username={NAME}", "--no-instructions", "--no-sync", *locale]
        self._tool("initdb", "-D", str(making), *options)
        single = ["--single", "-D", str(making), "-c", "fsync=off", "postgres"]
        self._tool("postgres", *single, stdin=f"CREATE DATABASE {NAME};\n")

    def _tool(self, program: str, *arguments: str, stdin: str = "") -> None:
        user = self._identity.user
        extra = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        argv = [*self._identity.prefix, str(self.programs / program), *arguments]
        done = subprocess.run(  # type: ignore[call-overload]
            argv,
            input=stdin,
            text=True,
            capture_output=True,
            check=False,
            env=_environment(),
            cwd="/",
            start_new_session=True,  # Ctrl-C is only for the supervisor
            **extra,
        )
        if done.returncode != 0 or re.search(r"^\S* ?(ERROR|FATAL|PANIC):", done.stderr, re.MULTILINE):
            reason = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
            raise LaunchRefused(f"PostgreSQL could not make its data folder in {self.data.parent}: {reason}")

    def _clean_up(self) -> None:
        """End a server that an earlier run left on this data, and delete the pid file of a dead one.

        PostgreSQL treats its pid file as valid if any process has that pid now. The check here is reliable: the
        working folder of a server on this data is the data folder.
        """
        lines = self._pid_file()
        main = [pid for pid in self._processes() if lines and str(pid) == lines[0].strip()]
        if main:
            _signal(main, signal.SIGINT)
            _wait_until(lambda: not self._processes(), 5.0)
        for sent in (signal.SIGQUIT, signal.SIGKILL):
            if left := self._processes():
                _signal(left, sent)
                _wait_until(lambda: not self._processes(), 5.0)
        if lines and os.path.isdir("/proc") and not self._processes():
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _processes(self) -> list[int]:
        data = os.path.realpath(self.data)
        return [process.pid for process in process_table() if _working_folder(process.pid) == data]


def _working_folder(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _wait_until(holds: Callable[[], bool], seconds: float) -> None:
    limit = time.monotonic() + seconds
    while not holds() and time.monotonic() < limit:
        time.sleep(0.05)


def _environment() -> dict[str, str]:
    """A minimal environment, so that no PG… variable of the caller has an effect."""
    inherited = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    return inherited | {"LC_ALL": "C", "TZ": "UTC"}
