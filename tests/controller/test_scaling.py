"""Scaling of a job while it runs, with the real engine and real backends."""

import pytest
from tests.controller.conftest import World
from tests.support import auditor

from hekla.apps.clusters import leases
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import facts, selectors, services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.decisions import EvictionReason, JobDecision, commit
from hekla.controller.backends import backend_of
from hekla.controller.lease_context import identity
from hekla.controller.pods import order_of
from hekla.domain.jobspec import JobSpec
from hekla.domain.scaling import JobScale
from hekla.lib import clock

RESTART = [{"events": ["*"], "action": "RestartJob"}]
TASK = {
    "name": "worker",
    "command": ["sleep", "60"],
    "resources": {"cpu": "1"},
    "env": {"HEKLA_SIM_SECONDS": "600"},
    "grace_seconds": 1,
}


def submit(world: World, name: str, replicas: int, least: int, **more) -> Job:
    task = {**TASK, "replicas": replicas, "min_available": least}
    spec = JobSpec.parse({"name": name, "tasks": [task], "plugins": {"svc": []}, **more})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def scale(world: World, job: Job, replicas: int, **more) -> Job:
    size = JobScale.parse({"tasks": {"worker": {"replicas": replicas, **more}}})
    return services.scale(job, size, user=world.alice, now=clock.now())


def running(job: Job) -> list[int]:
    found = Pod.objects.filter(job=job, phase="running", stopping=False)
    return list(found.order_by("index").values_list("index", flat=True))


def test_scaling_up_adds_pods_and_scaling_down_removes_the_last(world: World) -> None:
    job = submit(world, "elastic", 2, 1, policies=RESTART)
    world.reconcile_until(lambda: running(job) == [0, 1])
    scale(world, job, 4)
    world.reconcile_until(lambda: running(job) == [0, 1, 2, 3])
    job.refresh_from_db()
    newest = job.pods.get(index=3)
    addresses = selectors.addresses(job, backend_of(world.cluster).runner.address)
    hosts = order_of(job, newest, addresses).env["VC_WORKER_HOSTS"]
    assert hosts.split(",") == [pod.address for pod in job.pods.order_by("index")]
    job = scale(world, job, 1)
    world.reconcile_until(lambda: not Pod.objects.filter(job=job, index__gt=0).exclude(phase="failed").exists())
    job.refresh_from_db()
    assert (job.phase, job.retry_count, job.version, job.revision, job.replicas) == ("running", 0, 1, 3, 1)
    assert {pod.stop_reason for pod in job.pods.filter(index__gt=0)} == {"ScaledDown"}
    assert [(pod.index, pod.attempt) for pod in selectors.current_pods(job)] == [(0, 1)]
    changes = LoggedEvent.objects.filter(subject=f"job:{job.uid}", kind="JobChanged").order_by("id")
    assert [event.payload["changes"]["worker.replicas"] for event in changes] == [
        {"old": 2, "new": 4},
        {"old": 4, "new": 1},
    ]
    auditor.audit()


def test_replica_added_again_has_a_new_attempt_at_the_old_address(world: World) -> None:
    job = submit(world, "elastic", 2, 1)
    world.reconcile_until(lambda: running(job) == [0, 1])
    scale(world, job, 1)
    scale(world, job, 2)
    world.reconcile_until(lambda: running(job) == [0, 1] and job.pods.count() == 3)
    first, second = job.pods.filter(index=1).order_by("attempt")
    assert (first.address, first.phase, second.attempt) == (second.address, "failed", 2)
    auditor.audit()


def test_pending_job_can_be_scaled_before_admission(world: World) -> None:
    first = submit(world, "first", 4, 4)
    world.reconcile_until(lambda: running(first) == [0, 1, 2, 3])
    second = submit(world, "second", 1, 1)
    scale(world, second, 3)
    scale(world, first, 1, min_available=1)
    world.reconcile_until(lambda: running(second) == [0, 1, 2])
    auditor.audit()


def test_policy_can_restart_a_scaled_job(world: World) -> None:
    job = submit(world, "static", 2, 2, policies=[{"events": ["JobUpdated"], "action": "RestartJob"}])
    world.reconcile_until(lambda: running(job) == [0, 1])
    job = scale(world, job, 3)
    world.reconcile_until(lambda: running(job) == [0, 1, 2])
    job.refresh_from_db()
    assert ([pod.attempt for pod in selectors.current_pods(job)], job.version) == ([2, 2, 1], 2)
    assert job.retry_count == 0
    auditor.audit()


def test_slots_stay_with_their_replicas_if_tasks_have_dependencies(world: World) -> None:
    """The servers come first in the job spec and in the slots, so that a new one shifts the later replicas."""
    tasks = [
        {**TASK, "name": "ps", "replicas": 1, "min_available": 1},
        {**TASK, "replicas": 2, "min_available": 1, "depends_on": {"tasks": ["ps"]}},
    ]
    spec = JobSpec.parse({"name": "staged", "tasks": tasks, "plugins": {"svc": []}})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: running(job) == [0, 0, 1])
    before = facts.reserved_slots(Job.objects.get(pk=job.pk))
    job = services.scale(job, JobScale.parse({"tasks": {"ps": {"replicas": 2}}}), user=world.alice, now=clock.now())
    after = facts.reserved_slots(Job.objects.get(pk=job.pk))
    assert {replica: slot for replica, slot in after.items() if replica in before} == before
    assert len(set(after.values())) == 4
    world.reconcile_until(lambda: running(job) == [0, 0, 1, 1])
    assert {(pod.task, pod.index): pod.slot for pod in job.pods.all()} == after


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_decision_about_an_earlier_size_is_dropped(world: World) -> None:
    job = submit(world, "elastic", 2, 1)
    world.reconcile_until(lambda: running(job) == [0, 1])
    scale(world, job, 3)
    epoch = leases.take(world.cluster, identity(), now=clock.now())
    assert epoch is not None
    [_first, second] = job.pods.order_by("index")
    stale = JobDecision(job.pk, version=1, revision=1, evictions={second.pk: EvictionReason("preempt")})
    assert commit(world.cluster.pk, epoch, [stale], now=clock.now()) == 0
    fresh = JobDecision(job.pk, version=1, revision=2, evictions={second.pk: EvictionReason("preempt")})
    assert commit(world.cluster.pk, epoch, [fresh], now=clock.now()) == 1
