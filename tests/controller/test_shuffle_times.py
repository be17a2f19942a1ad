"""Rescheduling waits for its interval: the time of the last eviction outlives cycles and controllers."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.controller.conftest import World

from hekla.apps.clusters import leases
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Lease
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Pod
from hekla.apps.jobs.services.decisions import EvictionReason, JobDecision
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.simulation.snapshot_cache import forget_all, looking_at

INTERVAL = timedelta(minutes=10)
POLICY = """\
actions: "enqueue, allocate, shuffle"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - name: predicates
  - {name: rescheduling, arguments: {interval: 10m, thresholds: {cpu: 30}, targetThresholds: {cpu: 50}}}
"""
"""Without scores, all pods are placed on the first node again and again."""


@pytest.fixture
def uneven(transactional_db: None, settings, tmp_path) -> Iterator[World]:
    """Eight pods fill the first of two nodes; four of them should be on the other."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    forget_all()
    nodes = [{"name": name, "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "20"}} for name in "ab"]
    nothing = {"min": 0, "max": 0}
    world = World.found("simulated", {"nodes": nodes, "seed": 1, "speed": 100, "prepare_seconds": nothing})
    clusters.set_policy(world.cluster, POLICY, note="", by=None, actor=PLATFORM, now=clock.now())
    task = {"name": "w", "replicas": 8, "command": ["x"], "resources": {"cpu": "1"}, "grace_seconds": 0}
    task["env"] = {"HEKLA_SIM_SECONDS": "1e7"}
    spec = JobSpec.parse({"name": "even", "min_available": 1, "tasks": [task]})
    services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    yield world
    backend_of(world.cluster).close()
    controllers.reset()
    forget_all()


def evicted() -> int:
    return Pod.objects.filter(evicted=True).count()


def running() -> int:
    return Pod.objects.filter(phase="running", stopping=False).count()


def reconcile_afresh(world: World) -> None:
    """A new controller reconciles, without the caches of the one before."""
    controllers.reset()
    controllers.reconcile(world.cluster)


def test_rescheduling_keeps_its_interval_also_after_a_restart(uneven: World) -> None:
    uneven.reconcile_until(lambda: evicted() > 0 and running() == 8)
    assert evicted() == 4
    for _ in range(3):
        reconcile_afresh(uneven)
    assert (evicted(), running()) == (4, 8)

    Lease.objects.update(last_shuffle_at=clock.now() - INTERVAL)
    reconcile_afresh(uneven)
    assert evicted() == 8
    lasted = leases.last_shuffle_at(uneven.cluster.pk)
    assert lasted is not None
    assert clock.now() - lasted < INTERVAL


def test_simulation_evicts_once_per_interval(uneven: World) -> None:
    uneven.reconcile_until(lambda: evicted() > 0 and running() == 8)
    with looking_at(uneven.cluster) as outlook:
        assert outlook.snapshot.state.last_shuffle_at is not None
        assert outlook.simulator().evictions == []
    Lease.objects.update(last_shuffle_at=None)
    forget_all()
    with looking_at(uneven.cluster) as outlook:
        simulator = outlook.simulator()
        simulator.settle()
        assert simulator.evictions == []
        assert simulator.decided.binds == ()


@pytest.mark.parametrize(("action", "is_recorded"), [("shuffle", True), ("preempt", False)])
def test_only_shuffles_are_recorded(uneven: World, action: str, is_recorded: bool) -> None:
    clusters.set_policy(
        uneven.cluster, POLICY.replace(", shuffle", ""), note="", by=None, actor=PLATFORM, now=clock.now()
    )
    uneven.reconcile_until(lambda: running() == 8)
    pod = Pod.objects.select_related("job").first()
    assert pod is not None
    found = JobDecision(pod.job_id, pod.job.version, pod.job.revision, evictions={pod.pk: EvictionReason(action)})
    epoch = Lease.objects.get(cluster=uneven.cluster).epoch
    for _ in range(2):  # the second time, the pod is stopping already
        services.commit(uneven.cluster.pk, epoch, [found], now=clock.now())
        assert (leases.last_shuffle_at(uneven.cluster.pk) is not None) is is_recorded
        Lease.objects.update(last_shuffle_at=None)
        is_recorded = False
