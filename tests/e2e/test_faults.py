"""SIGKILL to any server process while jobs run: every process restarts, no job is lost, no pod runs twice.

Each pod writes a line to its own file when it begins, and one when it ends.
"""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from tests.e2e.conftest import HeklaServer
from tests.e2e.operator_client import Operator
from tests.e2e.test_backup import rest
from tests.support.examples import EVERY, examples

pytestmark = pytest.mark.slow
ROLES = ["web", "control", "default", "valkey", "postgres"] if EVERY == 1 else ["control", "valkey", "postgres"]
"""Web and the default worker are also killed around sessions (`test_killed_sessions`)."""
ROUNDS = examples(100) if EVERY == 1 else len(ROLES)
RESTART_SECONDS = 30
PODS = 2
BESIDE = {"name": "beside", "kind": "simulated", "config": {"nodes": [{"name": "node", "allocatable": {"cpu": "4"}}]}}
"""A second cluster, which the same processes reconcile."""


def test_killed_processes_restart_and_no_work_is_lost(killed_server: HeklaServer, tmp_path: Path) -> None:
    server = killed_server
    rng = random.Random(7)
    pod_logs = tmp_path / "diary"
    pod_logs.mkdir()
    pod_logs.chmod(0o1777)
    script = f'f={pod_logs}/$HEKLA_POD; echo begin >> "$f"; sleep "$1"; echo end >> "$f"'
    operator = server.operator
    operator(do="share", folder=str(pod_logs))
    with rest(server) as client:
        assert client.post("/clusters", json=BESIDE).is_success
    for number in range(ROUNDS):
        seconds = str(round(rng.uniform(0.5, 4), 1))
        operator(do="submit", name=f"round-{number}", replicas=PODS, command=["sh", "-c", script, "pod", seconds])
        time.sleep(rng.uniform(0, 0.8))
        role = ROLES[number % len(ROLES)]
        victim = server.children()[role]
        os.kill(victim, signal.SIGKILL)
        _wait_for_restart(server, role, victim)
    names = {f"round-{number}" for number in range(ROUNDS)}
    _wait_for_completion(operator, names)
    assert operator(do="audit") == "sound"
    with rest(server) as client:
        assert "beside" in {cluster["name"] for cluster in client.get("/clusters").json()}
    _check_pod_logs(pod_logs)


def _wait_for_restart(server: HeklaServer, role: str, victim: int) -> None:
    deadline = time.monotonic() + RESTART_SECONDS
    while server.children().get(role) in (None, victim) or not server.is_healthy():
        assert time.monotonic() < deadline, f"{role} did not come back\n{server.read_log()[-4000:]}"
        time.sleep(0.2)


def _wait_for_completion(operator: Operator, names: set[str]) -> None:
    deadline = time.monotonic() + 90
    while True:
        phases = operator(do="phases")
        assert phases.keys() >= names, "a job was lost"
        if all(phases[name] == "completed" for name in names):
            return
        assert time.monotonic() < deadline, phases
        time.sleep(0.5)


def _check_pod_logs(pod_logs: Path) -> None:
    """Every pod began once and ended once."""
    files = list(pod_logs.iterdir())
    assert len(files) == ROUNDS * PODS
    for file in files:
        assert file.read_text().split() == ["begin", "end"], file.name
