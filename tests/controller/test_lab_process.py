"""An experiment of the policy lab in its real process: it reports progress, and can be cancelled and killed."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection, connections
from tests.controller.conftest import World

from hekla.apps.accounts.roles import PlatformRole
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.policy_lab import problems, services
from hekla.apps.policy_lab.models import LabRun
from hekla.controller import policy_lab as experiments
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.simulation import policy_lab

PLATFORM = Path(__file__).parents[2] / "platform"
HOUR = timedelta(hours=1)


@pytest.fixture
def world(transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A job that ran for an hour on the only node. Processes that are started use this database."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    params = connection.get_connection_params()
    query = {name: params[name] for name in ("host", "port", "user") if params.get(name)}
    monkeypatch.setenv("DATABASE_URL", f"postgresql:///{params['dbname']}?{urlencode(query)}")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "hekla.project.settings")
    monkeypatch.setenv("PYTHONPATH", str(PLATFORM))
    monkeypatch.setenv("HEKLA_SECRET_KEY", settings.SECRET_KEY)
    size = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    found = World.found("simulated", {"nodes": [{"name": "n", "allocatable": size}]})
    found.alice.platform_role = PlatformRole.OPERATOR
    found.alice.save()
    controllers.reconcile(found.cluster)
    _record_job(found)
    return found


def _record_job(world: World) -> None:
    now = clock.now()
    spec = JobSpec.parse({"name": "one", "tasks": [{"name": "w", "command": ["true"], "resources": {"cpu": "4"}}]})
    job = jobs.submit(spec=spec, tenant=world.tenant, user=world.alice, now=now - 3 * HOUR)
    times = {"started_at": now - 2 * HOUR, "finished_at": now - HOUR}
    Job.objects.filter(pk=job.pk).update(phase="completed", gang_phase="completed", **times)
    Pod.objects.create(
        job=job, task="w", index=0, attempt=1, version=1, slot=1, address="127.0.0.1", node="n", phase="succeeded",
        created_at=now - 2 * HOUR, bound_at=now - 2 * HOUR, **times,
    )  # fmt: skip


def request(world: World) -> LabRun:
    now = clock.now()
    period = {"starts_at": now - 4 * HOUR, "ends_at": now}
    change = {"queues": {"default": {"weight": 3}}}
    return policy_lab.start(world.cluster, title="", **period, change=change, user=world.alice, now=now)


def test_the_process_finishes_an_experiment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[float] = []
    monkeypatch.setattr(experiments, "_WATCH_SECONDS", 0.1)
    monkeypatch.setattr(services, "beat", _noting(parts, services.beat))
    row = request(world)
    experiments.run_waiting()
    row.refresh_from_db()
    assert (row.state, row.problem, row.progress) == ("finished", "", 1.0)
    assert row.result is not None
    assert set(row.result["columns"]) == {"recorded", "unchanged", "changed"}
    assert parts, "the worker watched it"


def _noting(parts: list[float], beat: Callable[..., bool]) -> Callable[..., bool]:
    def watched(*arguments: Any, **more: Any) -> bool:
        parts.append(clock.now().timestamp())
        return beat(*arguments, **more)

    return watched


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """The processes that the worker starts: they exist, and do nothing."""
    found: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any, **more: Any) -> "subprocess.Popen[bytes]":
        process = popen(*arguments, **more)
        os.kill(process.pid, signal.SIGSTOP)
        found.append(process)
        return process

    popen = subprocess.Popen
    monkeypatch.setattr(experiments, "_WATCH_SECONDS", 0.05)
    monkeypatch.setattr(experiments.subprocess, "Popen", start)
    yield found
    for process in found:
        if process.poll() is None:
            process.kill()
            process.wait()


def _run_until(act: Callable[[], None], stopped: list[Any]) -> None:
    """Run the experiments that wait, and act once the process of the first exists."""

    def run() -> None:
        try:
            experiments.run_waiting()
        finally:
            connections.close_all()

    worker = Thread(target=run)
    worker.start()
    while not stopped and worker.is_alive():
        worker.join(0.02)
    act()
    worker.join(30)
    assert not worker.is_alive()


def test_a_cancelled_process_ends(world: World, stopped: list["subprocess.Popen[bytes]"]) -> None:
    row = request(world)
    _run_until(lambda: services.cancel(row, user=world.alice, now=clock.now()), stopped)
    row.refresh_from_db()
    assert row.state == "cancelled"
    assert stopped[0].returncode == -signal.SIGKILL


def test_a_killed_process_is_a_failure_with_its_reason(world: World, stopped: list["subprocess.Popen[bytes]"]) -> None:
    row = request(world)
    _run_until(lambda: stopped[0].send_signal(signal.SIGKILL), stopped)
    row.refresh_from_db()
    assert row.state == "failed"
    assert row.problem_facts == {"code": "process_killed", "signal": 9}
    assert problems.sentence(row).startswith("Its process was ended by signal 9.")
