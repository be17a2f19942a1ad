"""What dies is started again, later each time; what must end, ends in its order; nothing outlives us unseen."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hekla.backends.local.processes import read_process
from hekla.launcher.embedded import spawn
from hekla.launcher.terminal import LaunchRefused
from hekla.launcher.up import child as children
from hekla.launcher.up.child import Child, Role
from hekla.launcher.up.journal import Journal
from hekla.launcher.up.supervisor import Stopped, Supervisor

WAIT_SECONDS = 20.0


class House:
    """A supervisor with somewhere to write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.terminal = io.StringIO()
        self.record = folder / "processes.json"
        self.supervisor = Supervisor(Journal(folder, self.terminal), self.record)

    def role(self, name: str, script: str, stage: int = 0, **extra: object) -> Role:
        argv = ["sh", "-c", script]
        return Role(name, lambda output: spawn(argv, output=output), stop_stage=stage, **extra)  # type: ignore[arg-type]

    def until(self, holds: Callable[[], bool]) -> None:
        assert self.supervisor.run_until(holds, WAIT_SECONDS), self.said()

    def said(self) -> str:
        return self.terminal.getvalue()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_lines_reach_the_terminal_and_a_file_of_their_own(house: House) -> None:
    with house.supervisor:
        house.supervisor.add(house.role("talker", "echo 'one\n数 two'; exec sleep 100"))
        house.until(lambda: "two" in house.said())
    assert "talker   | one\ntalker   | 数 two\n" in house.said()
    assert "数 two" in (house.folder / "talker.log").read_text()


def test_a_line_without_an_end_is_not_lost_from_one_that_dies(house: House) -> None:
    with house.supervisor:
        house.supervisor.add(house.role("talker", "printf 'whole\nbroken off'; exit 3"))
        house.until(lambda: "exit code 3" in house.said())
    assert "talker   | broken off\n" in house.said()


def test_lines_that_are_not_for_the_terminal_stay_in_the_file(house: House) -> None:
    role = house.role("server", "echo chatter; echo FATAL; exec sleep 100", shows=lambda line: "FATAL" in line)
    with house.supervisor:
        house.supervisor.add(role)
        house.until(lambda: "FATAL" in house.said())
    assert "chatter" not in house.said()
    assert "chatter" in (house.folder / "server.log").read_text()


def test_a_killed_child_comes_back_and_both_are_said(house: House) -> None:
    with house.supervisor:
        child = house.supervisor.add(house.role("worker", "exec sleep 100"))
        house.until(lambda: child.ready)
        first = child.process
        assert first is not None
        first.kill()
        house.until(lambda: child.deaths == 1 and child.ready)
        assert child.process is not None
        assert child.process.pid != first.pid
    assert "worker was killed by SIGKILL; it is started again in 0.2 s" in house.said()
    assert "worker is back" in house.said()


def test_each_restart_waits_longer_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    child, delays = _child_that_dies(), []
    for _ in range(8):
        child.start()
        delays.append(_delay_after_death(child))
    assert delays == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]


def test_one_that_was_healthy_is_started_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    child = _child_that_dies()
    for _ in range(5):
        child.start()
        _delay_after_death(child)
    monkeypatch.setattr(children, "HEALTHY_AFTER_SECONDS", 0.0)
    child.start()
    assert _delay_after_death(child) == children.FIRST_DELAY_SECONDS


def _child_that_dies() -> Child:
    return Child(Role("mortal", lambda output: spawn(["false"], output=output), stop_stage=0))


def _delay_after_death(child: Child) -> float:
    assert child.process is not None
    child.process.wait()
    assert child.reap() == "ended with exit code 1"
    child.close()
    assert child.restart_at is not None
    return round(child.restart_at - time.monotonic(), 1)


def test_what_must_be_done_before_each_start_is_done_and_may_fail_for_a_while(house: House) -> None:
    calls: list[int] = []

    def prepare() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise LaunchRefused("The disk is full.")

    with house.supervisor:
        child = house.supervisor.add(house.role("server", "exec sleep 100", prepare=prepare))
        house.until(lambda: child.ready)
        child.signal(signal.SIGKILL)
        house.until(lambda: len(calls) == 3 and child.ready)
    assert "server does not start: The disk is full." in house.said()


def test_it_serves_only_once_it_says_so(house: House) -> None:
    flag = house.folder / "flag"
    with house.supervisor:
        role = house.role("web", f"sleep 0.3; touch {flag}; exec sleep 100", is_ready=lambda _pid: flag.exists())
        child = house.supervisor.add(role)
        assert not child.ready
        house.until(lambda: child.ready)
        assert flag.exists()


ENDING = "trap 'echo $0 >> {log}; exit 0' TERM INT; echo up; while :; do sleep 0.02; done"


def test_they_end_stage_by_stage(house: House) -> None:
    log = house.folder / "order"
    names = ["web", "beat", "workers", "valkey", "postgres"]
    with house.supervisor:
        for stage, name in reversed(list(enumerate(names))):
            argv = ["sh", "-c", ENDING.format(log=log), name]
            house.supervisor.add(Role(name, lambda output, argv=argv: spawn(argv, output=output), stop_stage=stage))
        house.until(lambda: house.said().count("| up") == len(names))
    assert log.read_text().split() == names


def test_one_that_does_not_end_is_killed_with_its_group(house: House) -> None:
    script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.1; done' & wait; wait"
    with house.supervisor:
        house.supervisor.add(house.role("stubborn", script, patience_seconds=0.2))
        house.until(lambda: "stubborn | " in house.said())
        grandchild = int(house.said().split("| ")[1])
    _assert_gone(grandchild)


def interrupted(house: House, role: Role, number: signal.Signals = signal.SIGINT) -> Child:
    """Start it, wait for its word, and send ourselves a signal, as somebody at the terminal does."""
    with house.supervisor:
        child = house.supervisor.add(role)
        house.until(lambda: "up" in house.said())
        os.kill(os.getpid(), number)
        with pytest.raises(Stopped):
            house.supervisor.run_forever(lambda: None)
    return child


def test_a_second_signal_ends_the_patience(house: House) -> None:
    """The patience is an hour: that this test ends says that it was cut short."""
    script = "trap 'kill -INT $PPID' TERM; echo up; while :; do sleep 0.02; done"
    child = interrupted(house, house.role("slow", script, patience_seconds=3600))
    assert child.exit_code == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_asks_for_the_end_and_handlers_are_put_back(house: House, number: signal.Signals) -> None:
    before = signal.getsignal(number)
    child = interrupted(house, house.role("web", "echo up; exec sleep 100"), number)
    assert child.exit_code == -signal.SIGTERM
    assert signal.getsignal(number) is before


def test_a_command_is_run_to_its_end_and_what_it_said_is_not_logged(house: House) -> None:
    with house.supervisor:
        assert house.supervisor.run_once("secret", lambda output: spawn(["echo", "the key"], output=output)) == [
            "the key"
        ]
    assert "the key" not in house.said()
    assert not (house.folder / "secret.log").exists()


def test_a_command_that_fails_is_told_with_what_it_said(house: House) -> None:
    failing = ["sh", "-c", "echo no such table; exit 1"]
    with house.supervisor, pytest.raises(LaunchRefused, match="'migrate' did not succeed"):
        house.supervisor.run_once("migrate", lambda output: spawn(failing, output=output))
    assert "migrate  | no such table" in house.said()


def test_who_runs_stands_on_disk_and_nobody_in_the_end(house: House) -> None:
    with house.supervisor:
        child = house.supervisor.add(house.role("web", "exec sleep 100"))
        assert child.process is not None
        assert json.loads(house.record.read_text())["web"][0] == child.process.pid
    assert json.loads(house.record.read_text()) == {}


def test_what_an_earlier_run_left_is_ended_and_a_stranger_with_its_pid_is_not(house: House) -> None:
    left = subprocess.Popen(["sleep", "100"], start_new_session=True)
    stranger = subprocess.Popen(["sleep", "100"], start_new_session=True)
    process = read_process(left.pid)
    assert process is not None
    house.record.write_text(json.dumps({"web": [left.pid, process.started], "beat": [stranger.pid, "1"], "x": None}))
    house.supervisor.end_leftovers()
    assert left.wait(10) == -signal.SIGTERM
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"web": 3}', '{"web": ["x", "y"]}'])
def test_a_damaged_list_of_processes_is_no_obstacle(house: House, text: str) -> None:
    house.record.write_text(text)
    house.supervisor.end_leftovers()


def test_children_do_not_outlive_a_killed_supervisor(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from hekla.launcher.embedded import spawn\n"
        "from hekla.launcher.up.child import Role; from hekla.launcher.up.journal import Journal\n"
        "from hekla.launcher.up.supervisor import Supervisor\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "with Supervisor(Journal(folder, sys.stderr), folder / 'processes.json') as house:\n"
        "    child = house.add(Role('web', lambda out: spawn(['sleep', '100'], output=out), stop_stage=0))\n"
        "    print(child.process.pid, flush=True); house.run_forever(lambda: None)\n"
    )
    environment = {**os.environ, "PYTHONPATH": "platform"}
    parent = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    _assert_gone(pid)


def _assert_gone(pid: int) -> None:
    limit = time.monotonic() + WAIT_SECONDS
    while (left := read_process(pid)) is not None and time.monotonic() < limit:
        time.sleep(0.02)
    assert left is None
