"""A policy trial predicts the effect of the policy."""

import pytest
from tests.controller.conftest import World
from tests.controller.test_sharing import ELASTIC, GPU, Gpus, gpus  # noqa: F401

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.engine import policy
from hekla.lib import clock
from hekla.simulation.policy_trial import Trial, TrialOutcome, try_policy

GENTLE = ELASTIC.replace("preempt, reclaim, ", "")


def submit(world: World, name: str, replicas: int, priority: int = 0) -> Job:
    env = {"HEKLA_SIM_SECONDS": "1e6"}
    task = {"name": "w", "replicas": replicas, "command": ["x"], "resources": {"cpu": "1", GPU: "1"}, "env": env}
    spec = JobSpec.parse({"name": name, "priority": priority, "min_available": 1, "tasks": [task]})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


@pytest.fixture
def full(gpus: Gpus) -> World:  # noqa: F811
    """All four GPUs are in use, and an urgent job waits with its pods created."""
    world = gpus(GENTLE, 4)
    submit(world, "first", 4)
    world.reconcile_until(lambda: Pod.objects.filter(phase="running").count() == 4)
    submit(world, "urgent", 2, priority=10)
    world.reconcile_until(lambda: Pod.objects.filter(job__name="urgent", phase="pending").count() == 2)
    return world


def try_text(world: World, text: str) -> Trial:
    return try_policy(world.cluster, policy.parse(GENTLE), policy.parse(text), now=clock.now())


def test_predicted_evictions_are_the_actual_ones(full: World) -> None:
    last = LoggedEvent.objects.latest("pk").pk
    trial = try_text(full, ELASTIC)
    assert LoggedEvent.objects.latest("pk").pk == last
    evictions = {one.job.name: (one.now, one.then) for one in trial.differences}
    assert set(evictions) == {"first"}
    assert evictions["first"][0] == TrialOutcome()
    clusters.set_policy(full.cluster, ELASTIC, note="", by=None, actor=PLATFORM, now=clock.now())
    controllers.reconcile(full.cluster)
    assert Pod.objects.filter(job__name="first", evicted=True).count() == evictions["first"][1].yields > 0


def test_policy_that_places_no_pods_is_reported(full: World) -> None:
    Pod.objects.filter(job__name="first").update(phase="succeeded")
    trial = try_text(full, "actions: enqueue")
    starts = {one.job.name: (one.now.starts, one.then.starts) for one in trial.differences}
    assert starts == {"urgent": (2, 0)}


def test_same_policy_makes_no_difference(full: World) -> None:
    trial = try_text(full, GENTLE)
    assert (trial.differences, trial.faults, trial.jobs) == ((), (), 2)
