"""Backup and restore: a restored data folder and database equal the originals."""

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

_SELECT_ALL = SQL("SELECT * FROM {}")
LOG = "local/local/pods/0123/0123-main-0-1/log"


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an empty database on its own server."""
    home = tmp_path_factory.mktemp("other")
    server = Postgres(home / "postgres", run_dir(home), transient=True)
    with (home / "log").open("ab") as log, running(server, log.fileno()):
        yield server.url


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A data folder with a key and the log of a pod."""
    home = Home(tmp_path / "home")
    home.open()
    home.set_secret_key("a-key-of-a-test")
    log = home.path / LOG
    log.parent.mkdir(parents=True)
    log.write_text("hello\n")
    (log.parent / "status.json").write_text("{}")
    (log.parent / "work").mkdir()
    (log.parent / "work" / "model.bin").write_text("of the pod's own")
    return home


@pytest.fixture
def live_database(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the test database with one job, set as DATABASE_URL as in a deployment."""
    now = clock.now()
    alice = accounts.create_user(username="alice", password=None, actor=PLATFORM, now=now)
    lab = tenancy.create(slug="lab", name="Lab", actor=PLATFORM, now=now)
    tenancy.add_member(lab, alice, "admin", actor=PLATFORM, now=now)
    cluster = clusters.create(name="sim", kind="simulated", config={}, actor=PLATFORM, now=now)
    queues.create(cluster=cluster, name="default", actor=PLATFORM, now=now)
    task = {"name": "main", "command": ["true"], "resources": {"cpu": "1"}}
    jobs.submit(spec=JobSpec.parse({"name": "one", "tasks": [task]}), tenant=lab, user=alice, now=now)
    params = connection.get_connection_params()
    query = {name: params[name] for name in ("host", "port", "user") if params.get(name)}
    url = f"postgresql:///{params['dbname']}?{urlencode(query)}"
    monkeypatch.setenv("DATABASE_URL", url)
    return url


def contents(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    tables = sorted(model._meta.db_table for model in apps.get_models(include_auto_created=True))
    with psycopg.connect(url) as database:
        return {
            table: sorted(database.execute(_SELECT_ALL.format(Identifier(table))).fetchall(), key=str)
            for table in tables
        }


def refusal(do: object, *argv: str) -> str:
    with pytest.raises(LaunchRefused) as refused:
        do(argv)  # type: ignore[operator]
    return refused.value.message


def make_backup(home: Home, tmp_path: Path) -> Path:
    path = tmp_path / "all.tar"
    assert back_up([str(path), "--data", str(home.path)]) == 0
    return path


def test_restored_data_equal_the_original(live_database, empty_database, home, tmp_path, monkeypatch) -> None:
    path, before = make_backup(home, tmp_path), contents(live_database)
    other = Home(tmp_path / "other")
    monkeypatch.setenv("DATABASE_URL", empty_database)
    argv = [str(path), "--data", str(other.path)]
    assert restore([*argv, "--replace"]) == 0
    assert contents(empty_database) == before
    assert before["jobs_job"]
    assert (other.path / LOG).read_text() == "hello\n"
    assert not (other.path / LOG).with_name("work").exists()
    assert other.secret_key() == "a-key-of-a-test"
    assert "holds something already" in refusal(restore, *argv)
    assert contents(empty_database) == before


def test_backup_is_private_to_its_owner_and_complete(live_database, home, tmp_path) -> None:
    path = make_backup(home, tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == ["all.tar", "home"]
    before = path.read_bytes()
    assert "already" in refusal(back_up, str(path), "--data", str(home.path))
    assert path.read_bytes() == before
    assert back_up([str(path), "--data", str(home.path), "--replace"]) == 0


def test_backup_does_not_follow_a_symlink(live_database, home, tmp_path) -> None:
    draft, target = tmp_path / "all.tar.making", tmp_path / "theirs"
    target.write_text("")
    draft.symlink_to(target)
    assert stat.S_IMODE(make_backup(home, tmp_path).stat().st_mode) == 0o600
    assert target.read_text() == ""


def test_job_deleted_during_a_backup_is_left_out(tmp_path) -> None:
    for job in ("a", "b", "c"):
        log = tmp_path / "kubernetes" / "c1" / "logs" / job / "log"
        log.parent.mkdir(parents=True)
        log.touch()
    found = durable_files(tmp_path)
    first = next(found).parent
    for job in set(first.parent.iterdir()) - {first}:
        shutil.rmtree(job)
    assert list(found) == []


def test_backup_without_a_database_is_refused(home, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("DATABASE_URL")
    sentence = refusal(back_up, str(tmp_path / "all.tar"), "--data", str(home.path))
    assert "Start Hekla" in sentence
    assert not (tmp_path / "all.tar").exists()


def test_restore_without_a_database_is_refused(live_database, home, tmp_path, monkeypatch) -> None:
    path = make_backup(home, tmp_path)
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/none")
    assert "Start Hekla" in refusal(restore, str(path), "--data", str(tmp_path / "other"))


def test_password_is_not_among_the_arguments(live_database, home, tmp_path, monkeypatch) -> None:
    calls = []
    run = subprocess.run
    monkeypatch.setattr(
        subprocess, "run", lambda argv, **options: calls.append((argv, options)) or run(argv, **options)
    )
    monkeypatch.setenv("DATABASE_URL", live_database.replace("postgresql:///", "postgresql://:s3cret%21@/"))
    make_backup(home, tmp_path)
    ((argv, options),) = [one for one in calls if "pg_dump" in str(one[0][0])]
    assert "s3cret" not in " ".join(map(str, argv))
    assert options["env"]["PGPASSWORD"] == "s3cret!"


def rewrite_backup(path: Path, change: object) -> Path:
    """Copy a backup with changed members.

    `change` gets the name and the content of a member. It returns the new content, or None to leave the member out.
    """
    other = path.with_name("changed.tar")
    with tarfile.open(path) as tar, tarfile.open(other, "w") as out:
        for member in tar.getmembers():
            data = change(member.name, tar.extractfile(member).read())  # type: ignore[operator, union-attr]
            if data is not None:
                member.size = len(data)
                out.addfile(member, io.BytesIO(data))
    return other


def _from_a_newer_version(name: str, data: bytes) -> bytes:
    if name != archive.MANIFEST:
        return data
    manifest = json.loads(data)
    return json.dumps(
        manifest | {"version": "9.9", "changes": [*manifest["changes"], "jobs.9999_of_tomorrow"]}
    ).encode()


def _from_a_newer_postgres(name: str, data: bytes) -> bytes:
    return json.dumps(json.loads(data) | {"postgres": 99}).encode() if name == archive.MANIFEST else data


INVALID_BACKUPS = {
    "was made of PostgreSQL 99": _from_a_newer_postgres,
    "damaged": lambda name, data: data[:-1] + b"?" if name == archive.DUMP else data,
    "holds no database.dump": lambda name, data: None if name == archive.DUMP else data,
    "is no backup of Hekla": lambda name, data: b"{}x" if name == archive.MANIFEST else data,
    "format that this Hekla does not know": lambda name, data: b'{"format": 2}' if name == archive.MANIFEST else data,
    "does not know jobs.9999_of_tomorrow": _from_a_newer_version,
}


@pytest.mark.parametrize("sentence", INVALID_BACKUPS)
def test_invalid_backup_changes_nothing(sentence, live_database, empty_database, home, tmp_path, monkeypatch) -> None:
    path = rewrite_backup(make_backup(home, tmp_path), INVALID_BACKUPS[sentence])
    monkeypatch.setenv("DATABASE_URL", empty_database)
    before = contents_or_none(empty_database)
    assert sentence in refusal(restore, str(path), "--data", str(tmp_path / "other"), "--replace")
    assert contents_or_none(empty_database) == before


def contents_or_none(url: str) -> object:
    try:
        return contents(url)
    except psycopg.errors.UndefinedTable:
        return None


@pytest.mark.parametrize("content", [b"", b"not a tar", b"\0" * 10240])
def test_file_that_is_not_a_tar_is_refused(content, tmp_path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(content)
    assert re.search(
        "cannot be read|no backup of Hekla", refusal(restore, str(path), "--data", str(tmp_path / "other"))
    )


@pytest.mark.parametrize("name", ["files/../../evil", "files//etc/evil", "files/link"])
def test_backup_with_a_foreign_file_is_refused(
    name, live_database, empty_database, home, tmp_path, monkeypatch
) -> None:
    path = make_backup(home, tmp_path)
    member = tarfile.TarInfo(name)
    if name.endswith("link"):
        member.type, member.linkname = tarfile.SYMTYPE, "/etc"
    with tarfile.open(path, "a") as tar:
        tar.addfile(member, io.BytesIO())
    monkeypatch.setenv("DATABASE_URL", empty_database)
    before = contents_or_none(empty_database)
    sentence = refusal(restore, str(path), "--data", str(tmp_path / "deep" / "other"), "--replace")
    assert "no Hekla put there" in sentence
    assert contents_or_none(empty_database) == before


def test_data_folder_in_use_is_not_restored(live_database, home, tmp_path) -> None:
    path = make_backup(home, tmp_path)
    with home.held("http://127.0.0.1:8000"):
        assert "already running" in refusal(restore, str(path), "--data", str(home.path), "--replace")
    with home.held():
        assert "being restored" in refusal(restore, str(path), "--data", str(home.path), "--replace")


def test_new_data_folder_gets_its_own_database(live_database, home, tmp_path) -> None:
    path, before = make_backup(home, tmp_path), contents(live_database)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE_", "HEKLA_"))}
    command = [sys.executable, "manage.py", "restore", str(path), "--data", str(tmp_path / "new")]
    with_packages = environment | {"HEKLA_VENV": sys.prefix}
    done = subprocess.run(command, cwd=CHECKOUT, env=with_packages, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "python3 manage.py up" in done.stdout
    new = Home(tmp_path / "new")
    server = Postgres(new.path / "postgres", run_dir(new.path))
    with (new.logs / "postgres.log").open("ab") as log, running(server, log.fileno()):
        assert contents(server.url) == before


def test_failed_replacement_keeps_the_old_data(live_database, empty_database, home, tmp_path, monkeypatch) -> None:
    path = make_backup(home, tmp_path)
    monkeypatch.setenv("DATABASE_URL", empty_database)
    argv = [str(path), "--data", str(tmp_path / "other"), "--replace"]
    assert restore(argv) == 0
    before = contents(empty_database)

    def fail_halfway(url: str, _dump: Path) -> None:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE jobs_job (half int)")
        raise LaunchRefused("pg_restore says: the disk is full")

    monkeypatch.setattr("hekla.launcher.backup.database.restore", fail_halfway)
    assert "the disk is full" in refusal(restore, *argv)
    assert contents(empty_database) == before
