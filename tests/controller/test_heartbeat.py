"""A control worker that hangs stops reporting, and its supervisor replaces it."""

import io
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.controller.conftest import World
from tests.support.workers import Workers

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, Lease
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.controller import heartbeat
from hekla.controller.cluster_controller import ClusterController
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.launcher.up.child import Child
from hekla.launcher.up.journal import Journal
from hekla.launcher.up.roles import workers
from hekla.launcher.up.supervisor import Supervisor
from hekla.lib import clock

PLUGIN = '''
"""Hangs in each cycle while a file exists."""
import pathlib, time
from hekla.controller import heartbeat

heartbeat.STUCK_AFTER_SECONDS = 3.0

def open_session(session, option):
    while pathlib.Path("{file}").exists():
        time.sleep(0.1)
'''
POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: hang}]
"""


@pytest.fixture
def beats(settings: Any, tmp_path: Path) -> Callable[[], bool]:
    """Whether a beat touches the file."""
    settings.HEARTBEAT_FILE = str(tmp_path / "beat")

    def beat() -> bool:
        Path(settings.HEARTBEAT_FILE).unlink(missing_ok=True)
        heartbeat.beat()
        return Path(settings.HEARTBEAT_FILE).exists()

    return beat


def test_no_beat_while_a_reconciliation_is_stuck(
    simulated: World, beats: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, is_running = threading.Event(), threading.Event()

    def hang(_self: ClusterController, _cluster: Cluster) -> None:
        is_running.set()
        assert may_end.wait(30)

    assert beats()
    monkeypatch.setattr(ClusterController, "_reconcile", hang)
    monkeypatch.setattr(heartbeat, "STUCK_AFTER_SECONDS", 0.2)
    thread = threading.Thread(target=controllers.reconcile, args=[simulated.cluster])
    thread.start()
    assert is_running.wait(10)
    time.sleep(0.3)
    assert not beats()
    controllers.get(simulated.cluster.pk).state.led_at = time.monotonic()
    assert beats(), "a renewal of the lease is progress"
    may_end.set()
    thread.join(10)
    time.sleep(0.3)
    assert beats(), "an idle controller is not stuck"


def test_systemd_is_notified(settings: Any, tmp_path: Path) -> None:
    settings.NOTIFY_SOCKET = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(settings.NOTIFY_SOCKET)
        line.settimeout(5)
        heartbeat.beat()
        assert line.recv(100) == b"WATCHDOG=1"
    heartbeat.beat()  # nobody listens any more: a warning only


class SupervisedWorker:
    """A real control worker under the supervisor of `manage.py up`."""

    def __init__(self, folder: Path) -> None:
        self.terminal = io.StringIO()
        self.supervisor = Supervisor(Journal(folder, self.terminal), folder / "processes.json")
        env = dict(Workers(folder).environment)
        env["PYTHONPATH"] = f"{folder}:{env['PYTHONPATH']}"
        env["HEKLA_HEARTBEAT"] = str(folder / "beat")
        env["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._role = replace(workers(env)[0], silence_seconds=8.0)
        self._beat = folder / "beat"

    def start(self) -> Child:
        """Starts it. It leads its cluster and reports."""
        child = self.supervisor.add(self._role)
        self.until(self._beat.exists)
        return child

    def until(self, holds: Callable[[], bool]) -> None:
        assert self.supervisor.run_until(holds, 60), self.terminal.getvalue()


def submit(world: World) -> None:
    spec = JobSpec.parse({"name": "one", "queue": "default", "tasks": [{"name": "main", "command": ["true"]}]})
    services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def pid_of(child: Child) -> int:
    assert child.process is not None
    return child.process.pid


def holder() -> str:
    return Lease.objects.values_list("holder", flat=True).first() or ""


def is_led_by(child: Child) -> bool:
    return child.process is not None and holder().endswith(f":{child.process.pid}")


@pytest.mark.slow
@pytest.mark.thorough
def test_stopped_worker_is_replaced(simulated: World, tmp_path: Path) -> None:
    worker = SupervisedWorker(tmp_path)
    with worker.supervisor:
        child = worker.start()
        worker.until(lambda: is_led_by(child))
        os.kill(pid_of(child), signal.SIGSTOP)
        worker.until(lambda: child.deaths == 1 and is_led_by(child))
    assert "control has not reported for 8 s: it is replaced" in worker.terminal.getvalue()


@pytest.mark.slow
@pytest.mark.thorough
def test_worker_with_a_loop_that_blocks_is_replaced(simulated: World, tmp_path: Path) -> None:
    hangs = tmp_path / "hangs"
    (tmp_path / "hekla_hang.py").write_text(PLUGIN.format(file=hangs))
    info = tmp_path / "hekla_hang-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hekla_hang\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hekla.plugins]\nhang = hekla_hang\n")
    clusters.set_policy(simulated.cluster, POLICY, note="", by=None, actor=PLATFORM, now=clock.now())
    worker = SupervisedWorker(tmp_path)
    with worker.supervisor:
        child = worker.start()
        worker.until(lambda: is_led_by(child))
        hangs.touch()
        submit(simulated)
        worker.until(lambda: child.deaths == 1)
        hangs.unlink()
        worker.until(lambda: Job.objects.get().started_at is not None)
        assert child.deaths == 1
