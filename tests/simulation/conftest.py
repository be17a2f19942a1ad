"""A platform whose machines are simulated, with two tenants, and what the engine keeps checked at every turn."""

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
"""With evictions, and without a bound on how much is let in."""
Found = Callable[..., World]


@pytest.fixture
def found(transactional_db: None, settings, tmp_path) -> Iterator[Found]:
    """Found a cluster of nodes of these sizes, of simulated time that hardly passes."""
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
    """A job of equal pods; what is not about the job is about its task."""
    own = {key: more.pop(key) for key in [*more] if key in JobSpec.model_fields}
    resources = {"cpu": str(more.pop("cpu", "1"))} | more.pop("resources", {})
    task = {"name": "worker", "replicas": replicas, "command": ["sleep", "600"], "resources": resources}
    return JobSpec.parse({"name": name, "tasks": [task | {"env": {"HEKLA_SIM_SECONDS": "600"}} | more], **own})


def submit(world: World, wanted: JobSpec) -> Job:
    return services.submit(spec=wanted, tenant=world.tenant, user=world.alice, now=clock.now())


def settle(world: World) -> None:
    """Let the controller turn until all is as it will be: simulated pods end at once when they are asked to."""
    for _ in range(4):
        controllers.reconcile(world.cluster)


def begun(job: Job) -> bool:
    """Whether so many of its pods have a place as it needs."""
    least = spec_of(Job.objects.get(pk=job.pk)).gang_minimum
    return Pod.objects.filter(job=job, stopping=False).exclude(node="").count() >= least


def end(world: World, job: Job) -> None:
    """It is aborted, and what it held is free again."""
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    settle(world)
