"""`manage.py up`: what it refuses, and in which words, before it starts anything."""

import argparse
import io
import json
import shutil
import socket
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db.migrations.recorder import MigrationRecorder

from hekla.launcher import up
from hekla.launcher.terminal import LaunchRefused, OtherVersion
from hekla.launcher.up import network, run, tables
from hekla.launcher.up.command import _port
from hekla.launcher.up.home import Home
from hekla.launcher.up.journal import Journal
from hekla.launcher.up.leftovers import end_pods
from hekla.launcher.up.roles import Address
from hekla.launcher.up.supervisor import CommandFailed, Supervisor
from hekla.launcher.up.tables import TablesStamp

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        yield door.getsockname()[1]


def refusal(*argv: str) -> str:
    with pytest.raises(LaunchRefused) as refused:
        up.main(argv)
    return refused.value.message


def test_a_port_in_use_is_named_and_a_free_one_proposed(tmp_path: Path, taken: int) -> None:
    sentence = refusal("--data", str(tmp_path / "home"), "--port", str(taken))
    assert f"Another program uses port {taken} of 127.0.0.1" in sentence
    proposed = int(sentence.rpartition("--port ")[2])
    network.check_free(Address("127.0.0.1", proposed))
    assert not (tmp_path / "home" / "postgres").exists()


def test_a_second_start_is_told_where_the_first_one_is(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.open()
    with home.held("http://127.0.0.1:8123"):
        sentence = refusal("--data", str(home.path))
    assert sentence.startswith("Hekla is already running at http://127.0.0.1:8123 (process ")


def test_a_folder_is_free_again_however_its_holder_ended(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.open()
    code = (
        "import sys; from pathlib import Path; from hekla.launcher.up.home import Home\n"
        f"with Home(Path({str(home.path)!r})).held('http://x'): print('held', flush=True); sys.stdin.read()"
    )
    environment = {"PYTHONPATH": "platform"}
    holder = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(LaunchRefused, match=f"process {holder.pid}"), home.held("http://y"):
        pass
    holder.kill()
    holder.communicate()
    with home.held("http://y"):
        assert json.loads((home.path / "lock").read_text())["url"] == "http://y"


@pytest.mark.parametrize(("free_megabytes", "is_refused"), [(499, True), (500, False)])
def test_a_full_disk_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_megabytes: int, is_refused: bool
) -> None:
    home = Home(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(0, 0, free_megabytes * 1024**2))
    if not is_refused:
        home.check_space()
        return
    with pytest.raises(LaunchRefused, match=f"has {free_megabytes} MB left"):
        home.check_space()


@pytest.mark.parametrize("option", [[], ["--reset", "--yes"]])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, option: list[str]) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    sentence = refusal("--data", str(tmp_path), *option)
    assert "not Hekla's" in sentence or "not made by Hekla" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_data_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is not a folder" in refusal("--data", str(tmp_path / "file"))


def test_reset_asks_and_without_anybody_to_ask_wants_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = _home_with_data(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert "--yes" in refusal("--data", str(home.path), "--reset", "--port", str(port))
    assert (home.path / "postgres" / "row").exists()


def test_a_wiped_folder_is_new_again_and_still_ours(tmp_path: Path) -> None:
    home = _home_with_data(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("")
    (home.path / "link").symlink_to(outside)
    with home.held("http://x"):
        home.wipe()
        home.open()
    assert {path.name for path in home.path.iterdir()} == {"hekla-data", "lock", "logs"}
    assert (outside / "precious").exists()


def _home_with_data(folder: Path) -> Home:
    home = Home(folder / "home")
    home.open()
    (home.path / "postgres").mkdir()
    (home.path / "postgres" / "row").write_text("")
    return home


def test_the_key_is_made_once_and_is_for_the_owner_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.open()
    key = home.secret_key()
    assert len(key) >= 50
    assert home.secret_key() == key
    assert (home.path / "secret-key").stat().st_mode & 0o777 == 0o600
    assert home.path.stat().st_mode & 0o777 == 0o700


def test_asking_for_an_environment_makes_no_folder(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert home.environment()["HEKLA_HOME"] == str(home.path)
    assert not home.path.exists()


def test_reset_ends_the_pods_of_this_folder_only(tmp_path: Path) -> None:
    work, other = tmp_path / "home" / "local" / "here" / "work", tmp_path / "other"
    work.mkdir(parents=True)
    other.mkdir()
    pod = subprocess.Popen(["sleep", "100"], cwd=work)
    stranger = subprocess.Popen(["sleep", "100"], cwd=other)
    end_pods(tmp_path / "home")
    assert pod.wait(10) == -9
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


@pytest.mark.parametrize("text", ["0", "65536", "-1", "http", "8000.5", ""])
def test_a_port_is_a_number_that_exists(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        _port(text)


@pytest.mark.parametrize(
    ("host", "wanted"),
    [("127.0.0.1", {"127.0.0.1", "localhost", "[::1]"}), ("10.1.2.3", {"10.1.2.3"}), ("fd00::1", {"[fd00::1]"})],
)
def test_it_answers_to_the_names_it_is_asked_by(host: str, wanted: set[str]) -> None:
    names = network.allowed_hosts(Address(host, 8000)).split(",")
    assert wanted <= set(names)
    assert "*" not in names
    assert "" not in names


def test_on_all_interfaces_it_answers_to_the_machine_by_name() -> None:
    assert socket.gethostname() in network.allowed_hosts(Address("0.0.0.0", 8000)).split(",")
    assert network.url(Address("0.0.0.0", 8000)).startswith("http://")
    assert "0.0.0.0" not in network.url(Address("0.0.0.0", 8000))


def test_a_host_that_is_not_this_machine_gets_a_sentence() -> None:
    with pytest.raises(LaunchRefused, match=r"cannot listen on port 8000 of 192\.0\.2\.1"):
        network.check_free(Address("192.0.2.1", 8000))


def test_tables_are_brought_up_again_when_the_database_or_its_migrations_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamp = TablesStamp(tmp_path / "tables", "postgresql:///one")
    assert not stamp.matches()
    stamp.write()
    assert TablesStamp(tmp_path / "tables", "postgresql:///one").matches()
    assert not TablesStamp(tmp_path / "tables", "postgresql:///other").matches()


def run_on(home: Home) -> run.Startup:
    home.open()
    supervisor = Supervisor(Journal(home.logs, io.StringIO()), home.path / "processes.json")
    return run.Startup(home, Address("127.0.0.1", 8000), supervisor)


def record(*names: str) -> None:
    for name in names:
        MigrationRecorder.Migration.objects.create(app=name.partition(".")[0], name=name.partition(".")[2])


@pytest.mark.django_db
def test_a_database_from_before_is_not_migrated() -> None:
    record("jobs.0078_before", "jobs.0079_retired", "of_a_package.0009_theirs")
    MigrationRecorder.Migration.objects.filter(app="external_pods").delete()
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0)
    assert refused.value.returncode == tables.OTHER_VERSION_EXIT_CODE
    assert "jobs.0079_retired and 1 more. Nothing was changed." in str(refused.value)


@pytest.mark.django_db
def test_a_newer_database_is_taken_as_it_is() -> None:
    record("jobs.0002_to_come")
    call_command("migrate", verbosity=0)


def test_migrations_of_packages_may_be_unknown() -> None:
    assert tables.unknown_changes(["sessions.0001_initial", "of_a_package.0009_theirs", "jobs.0001_initial"]) == []


def test_a_folder_of_another_version_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought_up = run_on(home := Home(tmp_path / "data"))
    lines = ["CommandError: The database was made by an earlier version of Hekla. Nothing was changed."]

    def fail(name: str, *_arguments: str) -> list[str]:
        raise CommandFailed(name, tables.OTHER_VERSION_EXIT_CODE, lines)

    monkeypatch.setattr(brought_up, "_django", fail)
    with pytest.raises(OtherVersion) as refused:
        brought_up._migrate()
    text = refused.value.message
    assert text.startswith(f"The data in {home.path} cannot be used by this version of Hekla.\nThe database was made")
    assert "Nothing was changed." in text
    assert f"HEKLA_HOME={home.path}-new python3 manage.py up" in text


def test_another_failure_of_the_migration_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brought_up = run_on(Home(tmp_path / "data"))

    def fail(name: str, *_arguments: str) -> list[str]:
        raise CommandFailed(name, 1, ["no such table"])

    monkeypatch.setattr(brought_up, "_django", fail)
    with pytest.raises(CommandFailed, match="'migrate' did not succeed"):
        brought_up._migrate()


def test_the_disk_filling_up_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    home.open()
    terminal = io.StringIO()
    running = run.Startup(home, Address("127.0.0.1", 8000), Supervisor(Journal(home.logs, terminal), home.path / "p"))
    monkeypatch.setattr(run, "DISK_LOOK_SECONDS", 0.0)
    for free, times_said in ((10**9, 0), (10**8, 1), (10**8, 1), (10**9, 1), (10**8, 2)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _path, free=free: Usage(0, 0, free))
        running.watch_disk()
        assert terminal.getvalue().count("MB left") == times_said


def test_a_log_that_cannot_be_written_is_said_once_and_the_terminal_goes_on(tmp_path: Path) -> None:
    terminal = io.StringIO()
    journal = Journal(tmp_path / "missing", terminal)
    journal.take("web", "one")
    journal.take("web", "two")
    assert terminal.getvalue().count("logs cannot be written") == 1
    assert "web      | one\n" in terminal.getvalue()
    assert "web      | two\n" in terminal.getvalue()


def test_what_was_held_is_shown_only_where_it_explains_a_failure(tmp_path: Path) -> None:
    for shown in (True, False):
        terminal = io.StringIO()
        journal = Journal(tmp_path, terminal)
        journal.holding = True
        journal.take("web", "traceback")
        assert terminal.getvalue() == ""
        journal.release(show=shown)
        assert ("traceback" in terminal.getvalue()) is shown


def test_logs_do_not_grow_without_end(tmp_path: Path) -> None:
    journal = Journal(tmp_path, io.StringIO())
    for _ in range(9000):
        journal.take("web", "x" * 3000, show=False)
    assert sum(path.stat().st_size for path in tmp_path.glob("web.log*")) < 17 * 1024**2
