"""Jobs that share a cluster under a policy with evictions: gangs never deadlock, and elastic pods are evicted."""

from collections.abc import Callable

import pytest
from tests.controller.conftest import World
from tests.support import auditor

from hekla import engine
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import history, labels, receipts
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import services as tenancy
from hekla.controller.controllers import controllers
from hekla.domain import formats
from hekla.domain.jobspec import JobSpec
from hekla.domain.scaling import JobScale
from hekla.lib import clock

GPU = "nvidia.com/gpu"
ELASTIC = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
TOGETHER = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: task-topology
"""
Gpus = Callable[..., World]


@pytest.fixture
def gpus(transactional_db: None, settings, tmp_path) -> Gpus:
    """Creates a simulated cluster of nodes with this many GPUs each, and sets the policy."""
    settings.HEKLA_HOME = tmp_path

    def make(policy: str, *sizes: int) -> World:
        now = clock.now()
        controllers.reset()
        world = World.found(
            "simulated",
            {
                "nodes": [
                    {"name": f"n{at}", "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110", GPU: str(size)}}
                    for at, size in enumerate(sizes)
                ],
                "seed": 1,
                "speed": 20,
            },
        )
        clusters.set_policy(world.cluster, policy, note="", by=world.alice, actor=PLATFORM, now=now)
        return world

    return make


def submit(world: World, name: str, replicas: int, least: int | None = None, **more) -> Job:
    task = {
        "name": "worker",
        "replicas": replicas,
        "command": ["train"],
        "resources": {GPU: "1"},
        "env": {"HEKLA_SIM_SECONDS": str(more.pop("seconds", 100_000))},
        "grace_seconds": 20,
        **({"min_available": least} if least else {}),
    }
    spec = JobSpec.parse({"name": name, "tasks": [task], **({"min_available": least} if least else {}), **more})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def running(job: Job) -> int:
    return Pod.objects.filter(job=job, phase="running", stopping=False).count()


def evicted(job: Job) -> list[Pod]:
    return list(Pod.objects.filter(job=job, evicted=True))


def settle(world: World, expected: dict[Job, int]) -> None:
    """Waits until this many pods of each job run, and checks that it stays so."""
    world.reconcile_until(lambda: all(running(job) == count for job, count in expected.items()))
    for _ in range(3):
        controllers.reset()  # the result must not depend on caches
        controllers.reconcile(world.cluster)
    assert {job: running(job) for job in expected} == expected
    auditor.audit()


def test_k1_two_jobs_of_four_workers_on_four_gpus_never_deadlock(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 2, 2)
    first, second = (submit(world, name, 4, seconds=20) for name in ("first", "second"))
    placements: list[dict[int, int]] = []

    def done() -> bool:
        placed = Pod.objects.filter(phase__in=["bound", "preparing", "running"]).values_list("job_id", flat=True)
        placements.append({job: list(placed).count(job) for job in set(placed)})
        return Job.objects.filter(phase="completed").count() == 2

    world.reconcile_until(done)
    assert all(len(jobs) <= 1 for jobs in placements)
    assert not evicted(first) + evicted(second)
    auditor.audit()


def test_k2_ps_and_workers_of_a_job_are_on_one_node_if_they_fit(gpus: Gpus) -> None:
    world = gpus(TOGETHER, 2, 4, 3)
    tasks = [
        {
            "name": name,
            "replicas": 2,
            "command": ["train"],
            "resources": {GPU: "1"},
            "env": {"HEKLA_SIM_SECONDS": "9e5"},
        }
        for name in ("ps", "worker")
    ]
    annotations = {"volcano.sh/task-topology-affinity": "ps,worker"}
    spec = JobSpec.parse({"name": "net", "tasks": tasks, "annotations": annotations})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: running(job) == 4)
    assert set(Pod.objects.filter(job=job).values_list("node", flat=True)) == {"n1"}


def test_v6_two_elastic_jobs_submitted_together_get_their_minimums(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 5, 5)
    first, second = submit(world, "job1-1", 10, 5), submit(world, "job1-2", 10, 5)
    settle(world, {first: 5, second: 5})
    assert not evicted(first) + evicted(second)


def test_v6_second_job_of_a_queue_preempts_elastic_pods(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 5, 5)
    first = submit(world, "job1-1", 10, 5)
    settle(world, {first: 10})
    second = submit(world, "job1-2", 10, 5)
    settle(world, {first: 5, second: 5})
    assert len(evicted(first)) == 5
    assert {pod.stop_reason for pod in evicted(first)} == {"preempt"}
    evictions = LoggedEvent.objects.filter(subject=f"job:{first.uid}", kind="PodEvicted")
    assert {event.payload["for_name"] for event in evictions} == {"job1-2"}
    assert {tuple(event.payload["plugins"]) for event in evictions} == {("drf",)}
    assert all("is evicted" in line.sentence for line in history.lines(list(evictions)))


def test_v6_job_of_another_queue_reclaims_elastic_pods(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 5, 5)
    queues.create(cluster=world.cluster, name="queue2", actor=PLATFORM, now=clock.now())
    first = submit(world, "job1-1", 10, 5)
    settle(world, {first: 10})
    second = submit(world, "job2-1", 10, 5, queue="queue2")
    settle(world, {first: 5, second: 5})
    assert {pod.stop_reason for pod in evicted(first)} == {"reclaim"}
    evictions = LoggedEvent.objects.filter(subject=f"job:{first.uid}", kind="PodEvicted")
    assert all(event.payload["plugins"] == ["gang", "conformance"] for event in evictions)
    (shares,) = evictions[0].payload["shares"]
    assert (shares["plugin"], shares["of"]) == ("proportion", "queue")
    assert shares["giver"] == {"before": 2.0, "after": 1.0}
    assert shares["taker"] == {"before": 0.0, "after": 1.0}
    (lost,), (gained,) = receipts.made_room_for(first), receipts.gained(second)
    assert (lost.count, lost.other, gained.count, gained.other) == (5, "job2-1", 5, "job1-1")
    assert lost.now == "5 of 5 are pending now."


def test_v6_job_that_needs_pods_of_a_minimum_is_not_admitted(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 5, 5)
    first = submit(world, "job1-1", 10, 5)
    settle(world, {first: 10})
    third = submit(world, "job1-3", 10, 8)
    settle(world, {first: 10, third: 0})
    third.refresh_from_db()
    assert third.gang_phase == "pending"
    assert third.waiting


def test_evicted_replica_is_pending_and_returns_when_there_is_room(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 4)
    first = submit(world, "elastic", 4, 2)
    settle(world, {first: 4})
    second = submit(world, "short", 2, seconds=40)
    world.reconcile_until(lambda: Job.objects.get(pk=second.pk).phase == "completed" and running(first) == 4)
    assert {pod.attempt for pod in Pod.objects.filter(job=first, phase="running")} == {1, 2}
    auditor.audit()


def test_not_preemptable_job_is_not_evicted(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 4)
    first = submit(world, "careful", 4, 2, annotations={"volcano.sh/preemptable": "false"})
    settle(world, {first: 4})
    second = submit(world, "second", 2)
    settle(world, {first: 4, second: 0})
    second.refresh_from_db()
    (reason,) = (reason for reason in second.waiting if reason["code"] == "nobody_preempted")
    assert reason["victims"]["barred"] == {"not_preemptable": 4}
    assert "4 pods are not preemptible" in labels.reason(reason)


ROLES = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: roles}}
spec:
  minAvailable: 2
  tasks:
  - name: ps
    replicas: 2
    template:
      metadata: {{annotations: {{{annotation}}}}}
      spec: &pod
        containers:
        - name: main
          image: train
          env: [{{name: HEKLA_SIM_SECONDS, value: "100000"}}]
          resources: {{limits: {{nvidia.com/gpu: 1}}}}
  - name: worker
    replicas: 2
    template: {{spec: *pod}}
"""


def submit_roles(world: World, annotation: str) -> Job:
    """Submits a job whose task `ps` has the annotation, and whose task `worker` has none."""
    spec = formats.load(ROLES.format(annotation=annotation)).spec
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def test_task_that_is_not_preemptable_keeps_its_pods(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 4)
    first = submit_roles(world, 'volcano.sh/preemptable: "false"')
    settle(world, {first: 4})
    second = submit(world, "second", 2, priority=10)
    settle(world, {first: 2, second: 2})
    assert {pod.task for pod in evicted(first)} == {"worker"}


def test_task_with_the_higher_priority_in_its_job_is_placed_first(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 2)
    job = submit_roles(world, 'volcano.sh/task-priority: "10"')
    settle(world, {job: 2})
    assert {pod.task for pod in Pod.objects.filter(job=job, phase="running")} == {"ps"}


def test_eviction_triggers_the_policy_of_the_job(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 4)
    rule = [{"events": ["PodEvicted"], "action": "RestartJob"}]
    first = submit(world, "rigid", 4, 2, policies=rule)
    settle(world, {first: 4})
    submit(world, "second", 2)
    world.reconcile_until(lambda: Job.objects.get(pk=first.pk).version > 1)


def test_failing_plugin_is_logged_once(gpus: Gpus, caplog, monkeypatch) -> None:
    world = gpus(ELASTIC, 4)

    def broken(*_: object) -> None:
        raise RuntimeError("no good")

    monkeypatch.setattr(engine.registry.plugins()["nodeorder"], "open_session", broken)
    for name in ("first", "second", "third"):
        submit(world, name, 2)
        controllers.reconcile(world.cluster)
    assert len([record for record in caplog.records if "no good" in record.getMessage()]) == 1


def test_history_of_an_eviction_hides_jobs_of_other_tenants(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 4)
    first = submit(world, "elastic", 4, 2)
    settle(world, {first: 4})
    now = clock.now()
    world.tenant = tenancy.create(slug="other", name="Other", actor=PLATFORM, now=now)
    tenancy.add_member(world.tenant, world.alice, "admin", actor=PLATFORM, now=now)
    submit(world, "secret", 2)
    world.reconcile_until(lambda: len(evicted(first)) == 2)
    evictions = LoggedEvent.objects.filter(subject=f"job:{first.uid}", kind="PodEvicted")
    assert "secret" not in str([event.payload for event in evictions])
    assert all("another job" in line.sentence for line in history.lines(list(evictions)))


def test_pods_added_by_scaling_are_evicted_first(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 4)
    small = submit(world, "small", 2)
    world.reconcile_until(lambda: running(small) == 2)
    size = JobScale.parse({"tasks": {"worker": {"replicas": 4}}})
    services.scale(small, size, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: running(small) == 4)
    urgent = submit(world, "urgent", 2, priority=10)
    world.reconcile_until(lambda: running(urgent) == 2)
    evicted = Pod.objects.filter(job=small, evicted=True).order_by("index")
    assert [(pod.index, pod.attempt) for pod in evicted] == [(2, 1), (3, 1)]
    assert Job.objects.get(pk=small.pk).phase == "running"
    auditor.audit()


def test_raised_priority_applies_from_the_next_cycle(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 4)
    first = submit(world, "elastic", 4, 2)
    settle(world, {first: 4})
    waiting, urgent = submit(world, "waits", 2, 2), submit(world, "urgent", 2, 2)
    services.set_priority(urgent, 10, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: running(urgent) == 2)
    assert running(waiting) == 0
    auditor.audit()
