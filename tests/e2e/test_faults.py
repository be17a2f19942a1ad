"""SIGKILL to any server process while jobs run: everything comes back by itself, no job is lost, no pod runs twice.

The pods tell it themselves: each writes a line when it begins and one when it ends, into a file of its own.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import CHECKOUT, Running

pytestmark = pytest.mark.slow
ROUNDS = int(os.environ.get("HEKLA_FAULT_ROUNDS", "20"))
ROLES = ["web", "control", "default", "beat", "valkey", "postgres"]
COME_BACK_SECONDS = 30
PODS = 2


class Operator:
    """See `tests.support.operator`."""

    def __init__(self, home: Path) -> None:
        path = os.pathsep.join([str(CHECKOUT / "platform"), str(CHECKOUT)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.operator", str(home)],
            cwd=CHECKOUT,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, **command: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def leave(self) -> None:
        self._process.communicate(timeout=30)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    hekla = Running(tmp_path / "home")
    yield hekla
    hekla.stop()
    hekla.end_pods()


def test_whatever_is_killed_comes_back_and_no_work_is_lost(running: Running, tmp_path: Path) -> None:
    dice = random.Random(7)
    diary = tmp_path / "diary"
    diary.mkdir()
    script = f'f={diary}/$HEKLA_POD; echo begin >> "$f"; sleep "$1"; echo end >> "$f"'
    operator = Operator(running.home)
    for number in range(ROUNDS):
        seconds = str(round(dice.uniform(0.5, 4), 1))
        operator(do="submit", name=f"round-{number}", replicas=PODS, command=["sh", "-c", script, "pod", seconds])
        time.sleep(dice.uniform(0, 0.8))
        role = ROLES[number % len(ROLES)]
        victim = running.children()[role]
        os.kill(victim, signal.SIGKILL)
        _wait_for_return(running, role, victim)
    names = {f"round-{number}" for number in range(ROUNDS)}
    _wait_for_the_end(operator, names)
    assert operator(do="audit") == "sound"
    operator.leave()
    _read(diary)


def _wait_for_return(running: Running, role: str, victim: int) -> None:
    deadline = time.monotonic() + COME_BACK_SECONDS
    while running.children().get(role) in (None, victim) or not running.answers():
        assert time.monotonic() < deadline, f"{role} did not come back\n{running.said()[-4000:]}"
        time.sleep(0.2)


def _wait_for_the_end(operator: Operator, names: set[str]) -> None:
    deadline = time.monotonic() + 90
    while True:
        phases = operator(do="phases")
        assert phases.keys() >= names, "a job was lost"
        if all(phases[name] == "completed" for name in names):
            return
        assert time.monotonic() < deadline, phases
        time.sleep(0.5)


def _read(diary: Path) -> None:
    """Every pod began once and ended once."""
    pages = list(diary.iterdir())
    assert len(pages) == ROUNDS * PODS
    for page in pages:
        assert page.read_text().split() == ["begin", "end"], page.name
