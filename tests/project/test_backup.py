"""A backup holds everything, and what is brought back is what was there."""

import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from django.apps import apps
from django.db import connection
from psycopg.sql import SQL, Identifier

from hekla.apps.accounts import services as accounts
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import services as tenancy
from hekla.backends.durable_files import durable_files
from hekla.domain.jobspec import JobSpec
from hekla.launcher.backup import archive
from hekla.launcher.backup.command import back_up, restore
from hekla.launcher.embedded import Postgres
from hekla.launcher.embedded.rundir import run_dir
from hekla.launcher.embedded.running import running
from hekla.launcher.terminal import LaunchRefused
from hekla.launcher.up.home import Home
from hekla.lib import clock
from hekla.lib.checkout import CHECKOUT

_ALL = SQL("SELECT * FROM {}")
LOG = "local/local/pods/0123/0123-main-0-1/log"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a database server of its own, with an empty database."""
    home = tmp_path_factory.mktemp("other")
    server = Postgres(home / "postgres", run_dir(home), transient=True)
    with (home / "log").open("ab") as log, running(server, log.fileno()):
        yield server.url


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A data folder with a key and the log of a pod."""
    made = Home(tmp_path / "home")
    made.open()
    made.set_secret_key("a-key-of-a-test")
    log = made.path / LOG
    log.parent.mkdir(parents=True)
    log.write_text("hello\n")
    (log.parent / "status.json").write_text("{}")
    (log.parent / "work").mkdir()
    (log.parent / "work" / "model.bin").write_text("of the pod's own")
    return made


@pytest.fixture
def live(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The database of the tests with a job in it, named as a deployment names its own."""
    now = clock.now()
    alice = accounts.create_user(username="alice", password=None, actor=PLATFORM, now=now)
    lab = tenancy.create(slug="lab", name="Lab", actor=PLATFORM, now=now)
    tenancy.add_member(lab, alice, "admin", actor=PLATFORM, now=now)
    cluster = clusters.create(name="sim", kind="simulated", config={}, actor=PLATFORM, now=now)
    queues.create(cluster=cluster, name="default", actor=PLATFORM, now=now)
    task = {"name": "main", "command": ["true"], "resources": {"cpu": "1"}}
    jobs.submit(spec=JobSpec.parse({"name": "one", "tasks": [task]}), tenant=lab, user=alice, now=now)
    told = connection.get_connection_params()
    where = {name: told[name] for name in ("host", "port", "user") if told.get(name)}
    url = f"postgresql:///{told['dbname']}?{urlencode(where)}"
    monkeypatch.setenv("DATABASE_URL", url)
    return url


def contents(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    tables = sorted(model._meta.db_table for model in apps.get_models(include_auto_created=True))
    with psycopg.connect(url) as asked:
        return {table: sorted(asked.execute(_ALL.format(Identifier(table))).fetchall(), key=str) for table in tables}


def refusal(do: object, *argv: str) -> str:
    with pytest.raises(LaunchRefused) as refused:
        do(argv)  # type: ignore[operator]
    return refused.value.message


def backed_up(home: Home, tmp_path: Path) -> Path:
    path = tmp_path / "all.tar"
    assert back_up([str(path), "--data", str(home.path)]) == 0
    return path


def test_what_is_brought_back_is_what_was_there(live, empty, home, tmp_path, monkeypatch) -> None:
    path, before = backed_up(home, tmp_path), contents(live)
    other = Home(tmp_path / "other")
    monkeypatch.setenv("DATABASE_URL", empty)
    argv = [str(path), "--data", str(other.path)]
    assert restore([*argv, "--replace"]) == 0
    assert contents(empty) == before
    assert before["jobs_job"]
    assert (other.path / LOG).read_text() == "hello\n"
    assert not (other.path / LOG).with_name("work").exists()
    assert other.secret_key() == "a-key-of-a-test"
    assert "holds something already" in refusal(restore, *argv)
    assert contents(empty) == before


def test_a_backup_is_for_its_owner_alone_and_never_half_there(live, home, tmp_path) -> None:
    path = backed_up(home, tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == ["all.tar", "home"]
    before = path.read_bytes()
    assert "already" in refusal(back_up, str(path), "--data", str(home.path))
    assert path.read_bytes() == before
    assert back_up([str(path), "--data", str(home.path), "--replace"]) == 0


def test_a_backup_is_not_written_into_what_somebody_laid_there(live, home, tmp_path) -> None:
    draft, theirs = tmp_path / "all.tar.making", tmp_path / "theirs"
    theirs.write_text("")
    draft.symlink_to(theirs)
    assert stat.S_IMODE(backed_up(home, tmp_path).stat().st_mode) == 0o600
    assert theirs.read_text() == ""


def test_a_job_that_is_deleted_while_a_backup_is_made_is_left_out(tmp_path) -> None:
    for job in ("a", "b", "c"):
        log = tmp_path / "kubernetes" / "c1" / "logs" / job / "log"
        log.parent.mkdir(parents=True)
        log.touch()
    found = durable_files(tmp_path)
    first = next(found).parent
    for job in set(first.parent.iterdir()) - {first}:
        shutil.rmtree(job)
    assert list(found) == []


def test_without_a_database_a_backup_says_what_to_do(home, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("DATABASE_URL")
    sentence = refusal(back_up, str(tmp_path / "all.tar"), "--data", str(home.path))
    assert "Start Hekla" in sentence
    assert not (tmp_path / "all.tar").exists()


def test_without_a_database_a_restoration_says_what_to_do(live, home, tmp_path, monkeypatch) -> None:
    path = backed_up(home, tmp_path)
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/none")
    assert "Start Hekla" in refusal(restore, str(path), "--data", str(tmp_path / "other"))


def test_a_password_is_not_among_the_arguments(live, home, tmp_path, monkeypatch) -> None:
    seen = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda argv, **more: seen.append((argv, more)) or run(argv, **more))
    monkeypatch.setenv("DATABASE_URL", live.replace("postgresql:///", "postgresql://:s3cret%21@/"))
    backed_up(home, tmp_path)
    ((argv, more),) = [one for one in seen if "pg_dump" in str(one[0][0])]
    assert "s3cret" not in " ".join(map(str, argv))
    assert more["env"]["PGPASSWORD"] == "s3cret!"


def rewritten(path: Path, change: object) -> Path:
    """The same backup with members changed: a function from name and content to content, or None for none of it."""
    other = path.with_name("changed.tar")
    with tarfile.open(path) as tar, tarfile.open(other, "w") as out:
        for member in tar.getmembers():
            data = change(member.name, tar.extractfile(member).read())  # type: ignore[operator, union-attr]
            if data is not None:
                member.size = len(data)
                out.addfile(member, io.BytesIO(data))
    return other


def _newer(name: str, data: bytes) -> bytes:
    if name != archive.MANIFEST:
        return data
    told = json.loads(data)
    return json.dumps(told | {"version": "9.9", "changes": [*told["changes"], "jobs.9999_of_tomorrow"]}).encode()


def _of_a_newer_server(name: str, data: bytes) -> bytes:
    return json.dumps(json.loads(data) | {"postgres": 99}).encode() if name == archive.MANIFEST else data


DAMAGES = {
    "was made of PostgreSQL 99": _of_a_newer_server,
    "damaged": lambda name, data: data[:-1] + b"?" if name == archive.DUMP else data,
    "holds no database.dump": lambda name, data: None if name == archive.DUMP else data,
    "is no backup of Hekla": lambda name, data: b"{}x" if name == archive.MANIFEST else data,
    "format that this Hekla does not know": lambda name, data: b'{"format": 2}' if name == archive.MANIFEST else data,
    "does not know jobs.9999_of_tomorrow": _newer,
}


@pytest.mark.parametrize("sentence", DAMAGES)
def test_what_is_no_whole_backup_changes_nothing(sentence, live, empty, home, tmp_path, monkeypatch) -> None:
    path = rewritten(backed_up(home, tmp_path), DAMAGES[sentence])
    monkeypatch.setenv("DATABASE_URL", empty)
    before = contents_or_nothing(empty)
    assert sentence in refusal(restore, str(path), "--data", str(tmp_path / "other"), "--replace")
    assert contents_or_nothing(empty) == before


def contents_or_nothing(url: str) -> object:
    try:
        return contents(url)
    except psycopg.errors.UndefinedTable:
        return None


@pytest.mark.parametrize("content", [b"", b"not a tar", b"\0" * 10240])
def test_what_is_no_tar_is_refused(content, tmp_path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(content)
    assert re.search(
        "cannot be read|no backup of Hekla", refusal(restore, str(path), "--data", str(tmp_path / "other"))
    )


@pytest.mark.parametrize("name", ["files/../../evil", "files//etc/evil", "files/link"])
def test_a_file_that_no_hekla_put_there_is_refused(name, live, empty, home, tmp_path, monkeypatch) -> None:
    path = backed_up(home, tmp_path)
    member = tarfile.TarInfo(name)
    if name.endswith("link"):
        member.type, member.linkname = tarfile.SYMTYPE, "/etc"
    with tarfile.open(path, "a") as tar:
        tar.addfile(member, io.BytesIO())
    monkeypatch.setenv("DATABASE_URL", empty)
    before = contents_or_nothing(empty)
    sentence = refusal(restore, str(path), "--data", str(tmp_path / "deep" / "other"), "--replace")
    assert "no Hekla put there" in sentence
    assert contents_or_nothing(empty) == before


def test_a_folder_in_use_is_left_alone(live, home, tmp_path) -> None:
    path = backed_up(home, tmp_path)
    with home.held("http://127.0.0.1:8000"):
        assert "already running" in refusal(restore, str(path), "--data", str(home.path), "--replace")
    with home.held():
        assert "being restored" in refusal(restore, str(path), "--data", str(home.path), "--replace")


def test_a_new_data_folder_gets_a_database_of_its_own(live, home, tmp_path) -> None:
    path, before = backed_up(home, tmp_path), contents(live)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE_", "HEKLA_"))}
    command = [sys.executable, "manage.py", "restore", str(path), "--data", str(tmp_path / "new")]
    told = environment | {"HEKLA_VENV": sys.prefix}
    done = subprocess.run(command, cwd=CHECKOUT, env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "python3 manage.py up" in done.stdout
    new = Home(tmp_path / "new")
    server = Postgres(new.path / "postgres", run_dir(new.path))
    with (new.logs / "postgres.log").open("ab") as log, running(server, log.fileno()):
        assert contents(server.url) == before


def test_what_was_to_be_replaced_is_there_still_where_it_could_not_be(live, empty, home, tmp_path, monkeypatch) -> None:
    path = backed_up(home, tmp_path)
    monkeypatch.setenv("DATABASE_URL", empty)
    argv = [str(path), "--data", str(tmp_path / "other"), "--replace"]
    assert restore(argv) == 0
    before = contents(empty)

    def half(url: str, _dump: Path) -> None:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE jobs_job (half int)")
        raise LaunchRefused("pg_restore says: the disk is full")

    monkeypatch.setattr("hekla.launcher.backup.database.restore", half)
    assert "the disk is full" in refusal(restore, *argv)
    assert contents(empty) == before
