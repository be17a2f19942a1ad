"""SIGKILL to the worker processes, again and again under load: nothing is lost, doubled or left over.

The audit must find nothing at the end.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from tests.controller.conftest import World
from tests.support import auditor
from tests.support.examples import EVERY
from tests.support.workers import Workers

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Lease
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.apps.tenancy.models import Tenant
from hekla.controller.cluster_controller import CACHE_DIFFERS
from hekla.controller.controllers import controllers
from hekla.domain.errors import Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import FINAL_JOB_PHASES
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

KILLS = 60 if EVERY == 1 else 3
SETTLED_WITHIN_SECONDS = 240
RESTART = [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}]
SIMULATED = {
    "nodes": [{"name": "node", "count": 4, "allocatable": {"cpu": "8", "memory": "16Gi"}}],
    "seed": 5,
    "speed": 20,
    "run_seconds": {"min": 10, "max": 60},
    "failure_rate": 0.1,
}


class Load:
    """The actions of users: submit, abort, resume, delete. Pods on the local cluster write a diary."""

    def __init__(self, world: World, diary: Path) -> None:
        self.dice = random.Random(11)
        self.names: list[str] = []
        self._world = world
        script = f'f={diary}/$HEKLA_POD; echo begin >> "$f"; sleep "$1"; echo end >> "$f"'
        self._command = ["sh", "-c", script, "pod"]

    def submit_and_act(self, number: int) -> None:
        """Submits a few jobs, and changes an existing one."""
        for at in range(2):
            more: dict[str, Any] = {"ttl_seconds_after_finished": 1} if at == 0 else {}
            self._submit(f"sim-{number}-{at}", "simulated", replicas=self.dice.randint(1, 6), policies=RESTART, **more)
        if number % 3 == 0:
            self._submit(f"local-{number}", "local", replicas=2)
        self._act()

    def is_over(self) -> bool:
        """Whether every job has ended, and every deleted one is cleaned."""
        unfinished = Job.objects.exclude(phase__in=[phase.value for phase in FINAL_JOB_PHASES])
        return not unfinished.exists() and not Job.objects.filter(deleted_at__isnull=False, cleaned_at=None).exists()

    def _submit(self, name: str, queue: str, **more: Any) -> None:
        seconds = f"{self.dice.uniform(0.3, 2):.1f}"
        task = {"name": "w", "replicas": more.pop("replicas"), "command": [*self._command, seconds], "grace_seconds": 1}
        task["resources"] = {"cpu": "1" if queue == "simulated" else "100m"}
        spec = JobSpec.parse({"name": name, "queue": queue, "tasks": [task], "max_retry": 3, **more})
        services.submit(spec=spec, tenant=self._world.tenant, user=self._world.alice, now=clock.now())
        self.names.append(name)

    def _act(self) -> None:
        """Changes a job of the simulated cluster. The local ones run to completion."""
        jobs = list(Job.objects.filter(queue__name="simulated", deleted_at=None).order_by("pk"))
        job = self.dice.choice(jobs)
        deed = self.dice.choice([self._abort, self._resume, self._delete, self._delete])
        try:
            deed(job)
        except Refused:
            return  # its phase does not allow it

    def _abort(self, job: Job) -> None:
        services.command(job, LifecycleAction.ABORT_JOB, user=self._world.alice, now=clock.now())

    def _resume(self, job: Job) -> None:
        services.command(job, LifecycleAction.RESUME_JOB, user=self._world.alice, now=clock.now())

    def _delete(self, job: Job) -> None:
        services.delete(job, user=self._world.alice, now=clock.now())


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    """A folder to which the pods on the local cluster can write."""
    folder = tmp_path / "diary"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def both(transactional_db: None, settings: Any, tmp_path: Path, diary: Path) -> World:
    """A local and a simulated cluster."""
    settings.HEKLA_HOME = tmp_path / "home"
    controllers.reset()
    size = {"cpu": "4", "memory": "8Gi", "pods": "40"}
    world = World.found("local", {"allocatable": size, "writable_folders": [str(diary)]})
    queues.create(cluster=world.cluster, name="local", actor=PLATFORM, now=clock.now())
    simulated = clusters.create(name="sim", kind="simulated", config=SIMULATED, actor=PLATFORM, now=clock.now())
    queues.create(cluster=simulated, name="simulated", actor=PLATFORM, now=clock.now())
    Tenant.objects.update(log_days=0)
    return world


@pytest.mark.slow
def test_killed_workers_lose_and_duplicate_nothing(both: World, diary: Path, tmp_path: Path) -> None:
    load = Load(both, diary)
    with Workers(tmp_path).at_work() as workers:
        _until(lambda: LoggedEvent.objects.filter(kind="LeaseAcquired").exists(), workers)
        for number in range(KILLS):
            load.submit_and_act(number)
            time.sleep(load.dice.uniform(0.2, 2.5))
            role = load.dice.choice(workers.roles)
            workers.kill(role)
            workers.start(role)
        _until(load.is_over, workers)
        output = workers.output()
    auditor.audit_everything()
    assert sorted(Job.objects.values_list("name", flat=True)) == sorted(load.names)
    _check_diary(diary)
    assert "Traceback" not in output, output[-4000:]
    assert CACHE_DIFFERS not in output
    _report()


def _until(done: Callable[[], bool], workers: Workers) -> None:
    deadline = time.monotonic() + SETTLED_WITHIN_SECONDS
    while not done():
        assert time.monotonic() < deadline, _describe(workers)
        time.sleep(0.2)


def _describe(workers: Workers) -> str:
    """The jobs that are not over, and the state of leases, queries and workers."""
    left = Job.objects.exclude(phase__in=[phase.value for phase in FINAL_JOB_PHASES])
    held = [(lease.cluster_id, lease.holder, lease.expires_at.isoformat()) for lease in Lease.objects.all()]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid, state, wait_event, query_start, left(query, 200) FROM pg_stat_activity")
        queries = cursor.fetchall()
    facts = [[f"{job}: {job.phase}" for job in left], held, *queries, workers.output()[-3000:], workers.stacks()]
    return "\n".join(map(str, facts))


def _check_diary(diary: Path) -> None:
    """Every local pod began once and ended once."""
    pods = Pod.objects.filter(job__queue__name="local")
    pages = {page.name: page.read_text().split() for page in diary.iterdir()}
    assert set(pages) == {f"{pod.job.uid.hex}:{pod.task}-{pod.index}-{pod.attempt}" for pod in pods}
    assert {tuple(page) for page in pages.values()} == {("begin", "end")}


def _report() -> None:
    """Prints figures of the run, for a run by hand with `-s`."""
    figures = {
        "kills": KILLS,
        "jobs": dict(Counter(Job.objects.values_list("phase", flat=True))),
        "deleted": Job.objects.filter(cleaned_at__isnull=False).count(),
        "pods": Pod.objects.count(),
        "events": LoggedEvent.objects.count(),
        "leases": LoggedEvent.objects.filter(kind="LeaseAcquired").count(),
    }
    print(figures)
