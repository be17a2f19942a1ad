"""A federated queue over a local cluster and one with a real API server: a job is in one of them at a time."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.controller.conftest import LAST_SECONDS, SIZE, World, describe

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.controller import audit
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.simulation import federation, snapshot_cache

pytestmark = pytest.mark.parametrize("world", ["kubernetes"], indirect=True)


@pytest.fixture
def both(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Four CPUs on each cluster. `both` federates the queues `default` on Kubernetes and `here` on this machine."""
    monkeypatch.setattr(federation, "PATIENCE_SECONDS", 120.0)
    snapshot_cache.forget_all()
    now = clock.now()
    here = clusters.create(name="here", kind="local", config={"allocatable": SIZE}, actor=PLATFORM, now=now)
    queue = queues.create(cluster=here, name="here", actor=PLATFORM, now=now)
    queues.create_federated(name="both", members=[world.queue, queue], actor=PLATFORM, now=now)
    reconcile_all()
    yield world
    for job in Job.objects.exclude(phase__in=[phase for phase in JobPhase if phase.is_final]):
        services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    reconcile_until(lambda: not Pod.objects.filter(phase__in=["bound", "preparing", "running"]).exists())
    backend_of(here).close()
    snapshot_cache.forget_all()


def reconcile_all() -> None:
    for cluster in Cluster.objects.order_by("id"):
        controllers.reconcile(cluster)


def reconcile_until(done: Callable[[], bool]) -> None:
    deadline = clock.now().timestamp() + LAST_SECONDS
    while not done():
        assert clock.now().timestamp() < deadline, describe()
        for cluster in Cluster.objects.order_by("id"):
            backend_of(cluster).wait(0.1)
        reconcile_all()


def submit(world: World, name: str, queue: str, cpu: str = "4") -> Job:
    task: dict[str, Any] = {"name": "main", "command": ["sleep", "600"], "resources": {"cpu": cpu}}
    task["env"] = {"HEKLA_SIM_SECONDS": "600"}
    spec = JobSpec.parse({"name": name, "queue": queue, "tasks": [task]})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def runs(job: Job) -> bool:
    return Job.objects.get(pk=job.pk).phase == JobPhase.RUNNING


def cluster_of(job: Job) -> str:
    return Job.objects.get(pk=job.pk).cluster.name


def test_job_starts_where_there_is_room(both: World) -> None:
    fills = submit(both, "fills", "default")
    reconcile_until(lambda: runs(fills))
    job = submit(both, "job", "both", cpu="1")
    assert cluster_of(job) == "here"
    reconcile_until(lambda: runs(job))
    assert audit.findings() == []


def test_job_moves_to_the_free_cluster_and_leaves_nothing_behind(both: World) -> None:
    fills = {queue: submit(both, f"fills-{queue}", queue) for queue in ("default", "here")}
    reconcile_until(lambda: all(map(runs, fills.values())))
    job = submit(both, "job", "both")
    before = cluster_of(job)
    reconcile_all()
    assert federation.move_waiting() == 0
    ended = fills["default" if before == "here" else "here"]
    services.command(ended, LifecycleAction.ABORT_JOB, user=both.alice, now=clock.now())
    reconcile_until(lambda: Job.objects.get(pk=ended.pk).phase == JobPhase.ABORTED)
    assert federation.move_waiting() == 1
    assert cluster_of(job) != before
    reconcile_until(lambda: runs(job))
    reconcile_all()
    assert job.uid.hex not in backend_of(Cluster.objects.get(name=before)).inventory().present
    assert Pod.objects.filter(job=job).count() == 1
    assert audit.findings() == []
