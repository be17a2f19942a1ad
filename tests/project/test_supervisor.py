"""The supervisor restarts its children with backoff, stops them in order, and leaves none behind."""

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
from hekla.launcher.up import supervisor
from hekla.launcher.up.child import Child, Role
from hekla.launcher.up.journal import Journal
from hekla.launcher.up.supervisor import Stopped, Supervisor

WAIT_SECONDS = 20.0


class Harness:
    """A supervisor with a terminal and a record of its processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.terminal = io.StringIO()
        self.record = folder / "processes.json"
        self.supervisor = Supervisor(Journal(folder, self.terminal), self.record)

    def role(self, name: str, script: str, stage: int = 0, **extra: object) -> Role:
        argv = ["sh", "-c", script]
        return Role(name, lambda output: spawn(argv, output=output), stop_stage=stage, **extra)  # type: ignore[arg-type]

    def until(self, condition: Callable[[], bool]) -> None:
        assert self.supervisor.run_until(condition, WAIT_SECONDS), self.read_output()

    def read_output(self) -> str:
        return self.terminal.getvalue()


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def test_output_goes_to_the_terminal_and_a_log_file(harness: Harness) -> None:
    with harness.supervisor:
        harness.supervisor.add(harness.role("talker", "echo 'one\n数 two'; exec sleep 100"))
        harness.until(lambda: "two" in harness.read_output())
    assert "talker   | one\ntalker   | 数 two\n" in harness.read_output()
    assert "数 two" in (harness.folder / "talker.log").read_text()


def test_unfinished_line_of_a_dead_child_is_printed(harness: Harness) -> None:
    with harness.supervisor:
        harness.supervisor.add(harness.role("talker", "printf 'whole\nbroken off'; exit 3"))
        harness.until(lambda: "exit code 3" in harness.read_output())
    assert "talker   | broken off\n" in harness.read_output()


def test_hidden_lines_are_only_in_the_log_file(harness: Harness) -> None:
    role = harness.role("server", "echo chatter; echo FATAL; exec sleep 100", shows=lambda line: "FATAL" in line)
    with harness.supervisor:
        harness.supervisor.add(role)
        harness.until(lambda: "FATAL" in harness.read_output())
    assert "chatter" not in harness.read_output()
    assert "chatter" in (harness.folder / "server.log").read_text()


def test_killed_child_is_restarted_and_reported(harness: Harness) -> None:
    with harness.supervisor:
        child = harness.supervisor.add(harness.role("worker", "exec sleep 100"))
        harness.until(lambda: child.ready)
        first = child.process
        assert first is not None
        first.kill()
        harness.until(lambda: child.deaths == 1 and child.ready)
        assert child.process is not None
        assert child.process.pid != first.pid
    assert "worker was killed by SIGKILL; it is started again in 0.2 s" in harness.read_output()
    assert "worker is back" in harness.read_output()


def test_retired_child_finishes_and_is_not_restarted(harness: Harness) -> None:
    script = "trap 'sleep 0.2; echo finished; exit' TERM; echo begun; while true; do sleep 0.05; done"
    with harness.supervisor:
        first = harness.supervisor.add(harness.role("first", script))
        harness.until(lambda: "begun" in harness.read_output())
        harness.supervisor.retire(first)
        harness.until(lambda: not first.runs)
        assert not harness.supervisor.run_until(lambda: first.runs, 0.5)
        assert json.loads(harness.record.read_text()) == {}
    assert "first    | finished" in harness.read_output()
    assert "started again" not in harness.read_output()


def test_retired_child_that_stays_is_killed(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_RETIRED_SECONDS", 0.2)
    with harness.supervisor:
        first = harness.supervisor.add(
            harness.role("first", "trap '' TERM; echo begun; while true; do sleep 0.05; done")
        )
        harness.until(lambda: "begun" in harness.read_output())
        harness.supervisor.retire(first)
        harness.until(lambda: not first.runs)


BEATS = "while touch {0}; do sleep 0.1; done"


@pytest.mark.parametrize(
    "hang",
    [
        "touch {0}; kill -STOP $$",
        "touch {0}; exec sleep 100",
        "trap '' TERM; touch {0}; while true; do sleep 0.1; done",
    ],
    ids=["stopped", "ends on request", "ignores requests"],
)
def test_child_that_hangs_is_replaced(harness: Harness, hang: str) -> None:
    beat, done = harness.folder / "beat", harness.folder / "done"
    script = f"test -e {done} && {BEATS.format(beat)}; touch {done}; {hang.format(beat)}"
    role = harness.role("control", script, heartbeat=beat, silence_seconds=1.0, patience_seconds=0.3)
    with harness.supervisor:
        child = harness.supervisor.add(role)
        harness.until(lambda: child.deaths == 1 and child.ready)
        assert not harness.supervisor.run_until(lambda: child.deaths > 1, 2), "the next one works"
    assert "control has not reported for 1 s: it is replaced" in harness.read_output()


def test_child_that_reports_or_has_never_reported_is_left_alone(harness: Harness) -> None:
    beat, never = harness.folder / "beat", harness.folder / "never"
    with harness.supervisor:
        works = harness.supervisor.add(harness.role("a", BEATS.format(beat), heartbeat=beat, silence_seconds=1.0))
        starts = harness.supervisor.add(harness.role("b", "exec sleep 100", heartbeat=never, silence_seconds=1.0))
        assert not harness.supervisor.run_until(lambda: bool(works.deaths or starts.deaths), 3)


def test_restart_delay_grows_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    child, delays = _child_that_dies(), []
    for _ in range(8):
        child.start()
        delays.append(_delay_after_death(child))
    assert delays == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]


def test_healthy_child_is_restarted_with_the_first_delay(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_preparation_runs_before_each_start_and_may_fail_temporarily(harness: Harness) -> None:
    calls: list[int] = []

    def prepare() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise LaunchRefused("The disk is full.")

    with harness.supervisor:
        child = harness.supervisor.add(harness.role("server", "exec sleep 100", prepare=prepare))
        harness.until(lambda: child.ready)
        child.signal(signal.SIGKILL)
        harness.until(lambda: len(calls) == 3 and child.ready)
    assert "server does not start: The disk is full." in harness.read_output()


def test_child_is_ready_only_after_its_readiness_check(harness: Harness) -> None:
    flag = harness.folder / "flag"
    with harness.supervisor:
        role = harness.role("web", f"sleep 0.3; touch {flag}; exec sleep 100", is_ready=lambda _pid: flag.exists())
        child = harness.supervisor.add(role)
        assert not child.ready
        harness.until(lambda: child.ready)
        assert flag.exists()


LOG_STOP = "trap 'echo $0 >> {log}; exit 0' TERM INT; echo up; while :; do sleep 0.02; done"


def test_children_stop_stage_by_stage(harness: Harness) -> None:
    log = harness.folder / "order"
    names = ["web", "beat", "workers", "valkey", "postgres"]
    with harness.supervisor:
        for stage, name in reversed(list(enumerate(names))):
            argv = ["sh", "-c", LOG_STOP.format(log=log), name]
            harness.supervisor.add(Role(name, lambda output, argv=argv: spawn(argv, output=output), stop_stage=stage))
        harness.until(lambda: harness.read_output().count("| up") == len(names))
    assert log.read_text().split() == names


def test_child_that_does_not_stop_is_killed_with_its_process_group(harness: Harness) -> None:
    script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.1; done' & wait; wait"
    with harness.supervisor:
        harness.supervisor.add(harness.role("stubborn", script, patience_seconds=0.2))
        harness.until(lambda: "stubborn | " in harness.read_output())
        grandchild = int(harness.read_output().split("| ")[1])
    _assert_gone(grandchild)


def interrupt(harness: Harness, role: Role, number: signal.Signals = signal.SIGINT) -> Child:
    """Start the role, wait for its output, and send a signal to this process, like Ctrl+C does."""
    with harness.supervisor:
        child = harness.supervisor.add(role)
        harness.until(lambda: "up" in harness.read_output())
        os.kill(os.getpid(), number)
        with pytest.raises(Stopped):
            harness.supervisor.run_forever(lambda: None)
    return child


def test_second_signal_kills_at_once(harness: Harness) -> None:
    """The patience is an hour. So this test ends only if the second signal cuts it short."""
    script = "trap 'kill -INT $PPID' TERM; echo up; while :; do sleep 0.02; done"
    child = interrupt(harness, harness.role("slow", script, patience_seconds=3600))
    assert child.exit_code == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_stops_the_children_and_handlers_are_restored(harness: Harness, number: signal.Signals) -> None:
    before = signal.getsignal(number)
    child = interrupt(harness, harness.role("web", "echo up; exec sleep 100"), number)
    assert child.exit_code == -signal.SIGTERM
    assert signal.getsignal(number) is before


def test_output_of_a_command_is_returned_and_not_logged(harness: Harness) -> None:
    with harness.supervisor:
        assert harness.supervisor.run_once("secret", lambda output: spawn(["echo", "the key"], output=output)) == [
            "the key"
        ]
    assert "the key" not in harness.read_output()
    assert not (harness.folder / "secret.log").exists()


def test_failed_command_is_reported_with_its_output(harness: Harness) -> None:
    failing = ["sh", "-c", "echo no such table; exit 1"]
    with harness.supervisor, pytest.raises(LaunchRefused, match="'migrate' did not succeed"):
        harness.supervisor.run_once("migrate", lambda output: spawn(failing, output=output))
    assert "migrate  | no such table" in harness.read_output()


def test_record_of_processes_is_on_disk_and_finally_empty(harness: Harness) -> None:
    with harness.supervisor:
        child = harness.supervisor.add(harness.role("web", "exec sleep 100"))
        assert child.process is not None
        assert json.loads(harness.record.read_text())["web"][0] == child.process.pid
    assert json.loads(harness.record.read_text()) == {}


def test_leftover_process_is_stopped_but_not_another_with_its_pid(harness: Harness) -> None:
    orphan = subprocess.Popen(["sleep", "100"], start_new_session=True)
    stranger = subprocess.Popen(["sleep", "100"], start_new_session=True)
    process = read_process(orphan.pid)
    assert process is not None
    harness.record.write_text(
        json.dumps({"web": [orphan.pid, process.started], "beat": [stranger.pid, "1"], "x": None})
    )
    harness.supervisor.end_leftovers()
    assert orphan.wait(10) == -signal.SIGTERM
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"web": 3}', '{"web": ["x", "y"]}'])
def test_damaged_record_of_processes_is_ignored(harness: Harness, text: str) -> None:
    harness.record.write_text(text)
    harness.supervisor.end_leftovers()


def test_children_do_not_outlive_a_killed_supervisor(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from hekla.launcher.embedded import spawn\n"
        "from hekla.launcher.up.child import Role; from hekla.launcher.up.journal import Journal\n"
        "from hekla.launcher.up.supervisor import Supervisor\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "with Supervisor(Journal(folder, sys.stderr), folder / 'processes.json') as harness:\n"
        "    child = harness.add(Role('web', lambda out: spawn(['sleep', '100'], output=out), stop_stage=0))\n"
        "    print(child.process.pid, flush=True); harness.run_forever(lambda: None)\n"
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
    while (process := read_process(pid)) is not None and time.monotonic() < limit:
        time.sleep(0.02)
    assert process is None
