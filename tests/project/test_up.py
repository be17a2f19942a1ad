"""`manage.py up`: the checks before it starts processes, its data folder and its logs."""

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
from django.db import connection
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
def used_port() -> Iterator[int]:
    """A port on which a socket listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def refusal(*argv: str) -> str:
    with pytest.raises(LaunchRefused) as refused:
        up.main(argv)
    return refused.value.message


def test_used_port_is_refused_and_a_free_one_proposed(tmp_path: Path, used_port: int) -> None:
    sentence = refusal("--data", str(tmp_path / "home"), "--port", str(used_port))
    assert f"Another program uses port {used_port} of 127.0.0.1" in sentence
    proposed = int(sentence.rpartition("--port ")[2])
    network.check_free(Address("127.0.0.1", proposed))
    assert not (tmp_path / "home" / "postgres").exists()


def test_second_start_is_refused_with_the_url_of_the_first(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.open()
    with home.held("http://127.0.0.1:8123"):
        sentence = refusal("--data", str(home.path))
    assert sentence.startswith("Hekla is already running at http://127.0.0.1:8123 (process ")


def test_folder_is_unlocked_after_its_process_was_killed(tmp_path: Path) -> None:
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
def test_full_disk_is_refused_before_writing(
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
def test_folder_of_another_program_is_not_changed(tmp_path: Path, option: list[str]) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    sentence = refusal("--data", str(tmp_path), *option)
    assert "not Hekla's" in sentence or "not made by Hekla" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_file_is_refused_as_data_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is not a folder" in refusal("--data", str(tmp_path / "file"))


def test_reset_without_a_terminal_requires_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = _home_with_data(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert "--yes" in refusal("--data", str(home.path), "--reset", "--port", str(port))
    assert (home.path / "postgres" / "row").exists()


def test_wiped_folder_is_new_and_still_a_data_folder(tmp_path: Path) -> None:
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


def test_key_is_created_once_and_is_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.open()
    key = home.secret_key()
    assert len(key) >= 50
    assert home.secret_key() == key
    assert (home.path / "secret-key").stat().st_mode & 0o777 == 0o600
    assert home.path.stat().st_mode & 0o777 == 0o700


def test_environment_does_not_create_the_folder(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert home.environment()["HEKLA_HOME"] == str(home.path)
    assert not home.path.exists()


def test_reset_ends_only_the_pods_of_this_folder(tmp_path: Path) -> None:
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
def test_invalid_port_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        _port(text)


@pytest.mark.parametrize(
    ("host", "wanted"),
    [("127.0.0.1", {"127.0.0.1", "localhost", "[::1]"}), ("10.1.2.3", {"10.1.2.3"}), ("fd00::1", {"[fd00::1]"})],
)
def test_allowed_hosts_of_an_address(host: str, wanted: set[str]) -> None:
    names = network.allowed_hosts(Address(host, 8000)).split(",")
    assert wanted <= set(names)
    assert "*" not in names
    assert "" not in names


def test_allowed_hosts_on_all_interfaces_have_the_host_name() -> None:
    assert socket.gethostname() in network.allowed_hosts(Address("0.0.0.0", 8000)).split(",")
    assert network.url(Address("0.0.0.0", 8000)).startswith("http://")
    assert "0.0.0.0" not in network.url(Address("0.0.0.0", 8000))


def test_listener_of_ipv6_leaves_ipv4_alone() -> None:
    try:
        listener = network.listen(Address("::1", 0))
    except LaunchRefused:
        pytest.skip("this machine has no IPv6")
    with listener:
        assert listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1


def test_host_of_another_machine_is_refused() -> None:
    with pytest.raises(LaunchRefused, match=r"cannot listen on port 8000 of 192\.0\.2\.1"):
        network.check_free(Address("192.0.2.1", 8000))


def test_host_for_sessions_that_shares_something_with_the_console_ends_the_start() -> None:
    address = Address("127.0.0.1", 8000)
    env = {"HEKLA_PUBLIC_URL": network.url(address), "HEKLA_ALLOWED_HOSTS": network.allowed_hosts(address)}
    network.check_tool_host(env)
    network.check_tool_host(env | {"HEKLA_WORKBENCH_HOST": "tools.localhost"})
    with pytest.raises(LaunchRefused, match="is a host of the console"):
        network.check_tool_host(env | {"HEKLA_WORKBENCH_HOST": "localhost"})


def test_stamp_of_tables_does_not_match_another_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamp = TablesStamp(tmp_path / "tables", "postgresql:///one")
    assert not stamp.matches()
    stamp.write()
    assert TablesStamp(tmp_path / "tables", "postgresql:///one").matches()
    assert not TablesStamp(tmp_path / "tables", "postgresql:///other").matches()


def startup_in(home: Home) -> run.Startup:
    home.open()
    supervisor = Supervisor(Journal(home.logs, io.StringIO()), home.path / "processes.json")
    return run.Startup(home, Address("127.0.0.1", 8000), supervisor)


def record_migrations(*names: str) -> None:
    for name in names:
        MigrationRecorder.Migration.objects.create(app=name.partition(".")[0], name=name.partition(".")[2])


@pytest.mark.django_db
def test_database_of_an_earlier_version_is_not_migrated() -> None:
    record_migrations("jobs.0078_before", "jobs.0079_retired", "of_a_package.0009_theirs")
    MigrationRecorder.Migration.objects.filter(app="external_pods").delete()
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0)
    assert refused.value.returncode == tables.OTHER_VERSION_EXIT_CODE
    assert "jobs.0079_retired and 1 more. Nothing was changed." in str(refused.value)


@pytest.mark.django_db
def test_database_whose_tables_have_other_names_is_not_migrated() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE queues_queue RENAME TO queues_line")
    with pytest.raises(CommandError, match=r"queues_queue\. Nothing was changed\.") as refused:
        call_command("migrate", verbosity=0)
    assert refused.value.returncode == tables.OTHER_VERSION_EXIT_CODE


@pytest.mark.django_db
def test_newer_database_is_accepted() -> None:
    record_migrations("jobs.0002_to_come")
    call_command("migrate", verbosity=0)
    assert MigrationRecorder.Migration.objects.filter(app="jobs", name="0002_to_come").exists()


def test_unknown_migrations_of_packages_are_accepted() -> None:
    assert tables.unknown_changes(["sessions.0001_initial", "of_a_package.0009_theirs", "jobs.0001_initial"]) == []


def test_folder_of_another_version_is_refused_with_a_solution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    startup = startup_in(home := Home(tmp_path / "data"))
    lines = ["CommandError: The database was made by an earlier version of Hekla. Nothing was changed."]

    def fail(name: str, *_arguments: str) -> list[str]:
        raise CommandFailed(name, tables.OTHER_VERSION_EXIT_CODE, lines)

    monkeypatch.setattr(startup, "_django", fail)
    with pytest.raises(OtherVersion) as refused:
        startup._migrate()
    text = refused.value.message
    assert text.startswith(f"The data in {home.path} cannot be used by this version of Hekla.\nThe database was made")
    assert "Nothing was changed." in text
    assert f"HEKLA_HOME={home.path}-new python3 manage.py up" in text


def test_other_failure_of_the_migration_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    startup = startup_in(Home(tmp_path / "data"))

    def fail(name: str, *_arguments: str) -> list[str]:
        raise CommandFailed(name, 1, ["no such table"])

    monkeypatch.setattr(startup, "_django", fail)
    with pytest.raises(CommandFailed, match="'migrate' did not succeed"):
        startup._migrate()


def test_full_disk_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    home.open()
    terminal = io.StringIO()
    running = run.Startup(home, Address("127.0.0.1", 8000), Supervisor(Journal(home.logs, terminal), home.path / "p"))
    monkeypatch.setattr(run, "DISK_LOOK_SECONDS", 0.0)
    for free, times_printed in ((10**9, 0), (10**8, 1), (10**8, 1), (10**9, 1), (10**8, 2)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _path, free=free: Usage(0, 0, free))
        running.watch_disk()
        assert terminal.getvalue().count("MB left") == times_printed


def test_unwritable_log_is_reported_once_and_the_terminal_continues(tmp_path: Path) -> None:
    terminal = io.StringIO()
    journal = Journal(tmp_path / "missing", terminal)
    journal.take("web", "one")
    journal.take("web", "two")
    assert terminal.getvalue().count("logs cannot be written") == 1
    assert "web      | one\n" in terminal.getvalue()
    assert "web      | two\n" in terminal.getvalue()


def test_held_output_is_printed_only_after_a_failure(tmp_path: Path) -> None:
    for show in (True, False):
        terminal = io.StringIO()
        journal = Journal(tmp_path, terminal)
        journal.holding = True
        journal.take("web", "traceback")
        assert terminal.getvalue() == ""
        journal.release(show=show)
        assert ("traceback" in terminal.getvalue()) is show


def test_logs_are_rotated(tmp_path: Path) -> None:
    journal = Journal(tmp_path, io.StringIO())
    for _ in range(9000):
        journal.take("web", "x" * 3000, show=False)
    assert sum(path.stat().st_size for path in tmp_path.glob("web.log*")) < 17 * 1024**2
