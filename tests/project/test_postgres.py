"""PostgreSQL as a child process: initialized once, restarted on the same data, also after an earlier run was killed."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from hekla.launcher.embedded import Postgres
from hekla.launcher.embedded.rundir import run_dir
from hekla.launcher.terminal import LaunchRefused


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data folder for all tests of this file, in their order: initdb takes almost a second."""
    home = tmp_path_factory.mktemp("pg")
    Postgres(home / "postgres", run_dir(home), transient=True).prepare()
    return home


@pytest.fixture
def server(home: Path) -> Postgres:
    return Postgres(home / "postgres", run_dir(home), transient=True)


def start(server: Postgres) -> subprocess.Popen[bytes]:
    server.prepare()
    process = server.start(subprocess.DEVNULL)
    limit = time.monotonic() + 30
    while not server.is_ready(process.pid):
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.02)
    return process


@contextmanager
def running(server: Postgres) -> Iterator[subprocess.Popen[bytes]]:
    process = start(server)
    yield process
    process.send_signal(server.stop_signal)
    assert process.wait(30) == 0


def test_server_listens_only_on_its_socket_and_uses_utf8(server: Postgres) -> None:
    with running(server), psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT current_database(), current_user").fetchone() == ("hekla", "hekla")
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert connection.execute("SELECT upper('größe'), '队列'").fetchone() == ("GRÖßE", "队列")
    assert server.run.stat().st_mode & 0o077 == 0


def test_data_survive_a_restart(server: Postgres) -> None:
    with running(server), psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (value int)")
        connection.execute("INSERT INTO kept VALUES (7)")
    with running(server), psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT value FROM kept").fetchone() == (7,)


def test_killed_server_starts_again(server: Postgres) -> None:
    killed = start(server)
    killed.kill()
    killed.wait()
    assert (server.data / "postmaster.pid").exists()
    with running(server), psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_reused_pid_in_the_pid_file_does_not_matter(server: Postgres) -> None:
    killed = start(server)
    killed.kill()
    killed.wait()
    pid_file = server.data / "postmaster.pid"
    pid_file.write_text("\n".join([str(os.getpid()), *pid_file.read_text().splitlines()[1:]]))
    with running(server) as process:
        assert process.pid != os.getpid()


def test_server_of_an_earlier_run_is_stopped_first(server: Postgres) -> None:
    orphan = start(server)
    with running(server) as process:
        assert orphan.wait(10) is not None
        assert process.poll() is None


def test_server_is_ready_only_with_the_pid_of_its_process(server: Postgres) -> None:
    with running(server) as process:
        assert not server.is_ready(process.pid + 1)
    assert not server.is_ready(process.pid)


def test_server_ends_with_its_parent(server: Postgres) -> None:
    """A killed process cannot stop its children. The operating system does it."""
    server.prepare()
    code = (
        "import os, subprocess, sys, pathlib; from hekla.launcher.embedded import Postgres\n"
        f"server = Postgres(pathlib.Path({str(server.data)!r}), pathlib.Path({str(server.run)!r}), transient=True)\n"
        "print(server.start(subprocess.DEVNULL).pid, flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "PYTHONPATH": "platform"}
    parent = subprocess.Popen(
        ["python3", "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    limit = time.monotonic() + 20
    while Path(f"/proc/{pid}/stat").exists() and time.monotonic() < limit:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}/stat").exists()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("PG_VERSION", "13\n", "written by PostgreSQL 13"),
        ("something", "else", "is not a database of PostgreSQL"),
    ],
)
def test_unusable_data_folder_is_refused(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    data = tmp_path / "postgres"
    data.mkdir()
    (data / name).write_text(content)
    with pytest.raises(LaunchRefused, match=sentence):
        Postgres(data, tmp_path).prepare()
    assert (data / name).read_text() == content


def test_interrupted_first_start_is_repeated(tmp_path: Path) -> None:
    (tmp_path / "postgres.making" / "base").mkdir(parents=True)
    server = Postgres(tmp_path / "postgres", run_dir(tmp_path), transient=True)
    with running(server), psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not (tmp_path / "postgres.making").exists()


def test_failure_of_initdb_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk: the message has the last output of initdb, and no incomplete data folder remains."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {
        "postgres": "#!/bin/sh\necho 'postgres (PostgreSQL) 18.4'\n",
        "initdb": "#!/bin/sh\necho 'initdb: error: could not write: No space left on device' >&2\nexit 1\n",
    }.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    server = Postgres(tmp_path / "postgres", tmp_path, programs=programs)
    with pytest.raises(LaunchRefused, match="No space left on device"):
        server.prepare()
    assert not server.data.exists()


def test_too_old_server_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "postgres"
    program.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 12.1 (Debian 12.1-1)'\n")
    program.chmod(0o755)
    with pytest.raises(LaunchRefused, match=r"12\.1.*version 15 or later"):
        Postgres(tmp_path / "data", tmp_path, programs=tmp_path).prepare()
