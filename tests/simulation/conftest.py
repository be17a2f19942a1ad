"""A platform with simulated nodes and two tenants. The engine's cache is checked after every cycle."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.controller.conftest import World, engine_is_checked

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.simulation import snapshot_cache

__all__ = ["engine_is_checked"]
POLICY = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
"""
"""A policy with evictions, and without a limit on admission."""
WorldFactory = Callable[..., World]


@pytest.fixture
def found(transactional_db: None, settings, tmp_path) -> Iterator[WorldFactory]:
    """A factory of platforms with one simulated cluster, given the sizes of its nodes. Simulated time hardly passes."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    snapshot_cache.forget_all()

    def make(*sizes: dict[str, Any], policy: str = "") -> World:
        nodes = [
            {
                "name": f"n{at}",
                "labels": {"zone": size.pop("zone", "a")},
                "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"} | size,
            }
            for at, size in enumerate(sizes)
        ]
        world = World.found("simulated", {"nodes": nodes, "seed": 1, "speed": 1, "stop_seconds": 0})
        if policy:
            clusters.set_policy(world.cluster, text=policy, note="", by=world.alice, actor=PLATFORM, now=clock.now())
        controllers.reconcile(world.cluster)
        return world

    yield make
    controllers.reset()
    snapshot_cache.forget_all()


def spec(name: str = "draft", replicas: int = 1, **more: Any) -> JobSpec:
    """A job of equal pods. Arguments that are not fields of the job are fields of its task."""
    own = {key: more.pop(key) for key in [*more] if key in JobSpec.model_fields}
    resources = {"cpu": str(more.pop("cpu", "1"))} | more.pop("resources", {})
    command = more.pop("command", ["sleep", "600"])
    task = {"name": "worker", "replicas": replicas, "command": command, "resources": resources}
    return JobSpec.parse({"name": name, "tasks": [task | {"env": {"HEKLA_SIM_SECONDS": "600"}} | more], **own})


def submit(world: World, job_spec: JobSpec) -> Job:
    return services.submit(spec=job_spec, tenant=world.tenant, user=world.alice, now=clock.now())


def settle(world: World) -> None:
    """Reconcile until nothing changes any more: simulated pods stop at once."""
    for _ in range(4):
        controllers.reconcile(world.cluster)


def has_started(job: Job) -> bool:
    """Whether at least the gang's minimum of pods has a node."""
    least = spec_of(Job.objects.get(pk=job.pk)).gang_minimum
    return Pod.objects.filter(job=job, stopping=False).exclude(node="").count() >= least


def abort_and_settle(world: World, job: Job) -> None:
    """Abort the job and free its resources."""
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    settle(world)
