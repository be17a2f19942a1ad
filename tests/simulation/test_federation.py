"""Federated queues: a job is placed on the cluster where it starts first, and moves while it waits."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from tests.controller.conftest import World
from tests.simulation.conftest import abort_and_settle, has_started, spec, submit

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, ClusterHealth, NodeFacts
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import audit, selectors, services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.decisions import JobDecision, commit
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import FederatedQueue, Queue
from hekla.apps.tenancy import services as tenancy
from hekla.controller.controllers import controllers
from hekla.domain.errors import Invalid, Refused
from hekla.domain.phases import GangPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.simulation import federation, snapshot_cache

SIZE = {"cpu": "4", "memory": "8Gi", "pods": "20"}


def config(nodes: int = 1) -> dict[str, Any]:
    found = [{"name": f"n{at}", "allocatable": SIZE} for at in range(nodes)]
    return {"nodes": found, "seed": 1, "speed": 1, "stop_seconds": 0}


@pytest.fixture
def world(transactional_db: None, settings, tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Simulated clusters `first` and `second` of 4 CPUs, with a queue each, and the federated queue `both`."""
    settings.HEKLA_HOME = tmp_path
    settings.CHECK_ENGINE = False
    monkeypatch.setattr(federation, "PATIENCE_SECONDS", 120.0)
    controllers.reset()
    snapshot_cache.forget_all()
    made = World.found("simulated", config())
    now = clock.now()
    Cluster.objects.filter(pk=made.cluster.pk).update(name="first")
    made.cluster.refresh_from_db()
    second = clusters.create(name="second", kind="simulated", config=config(), actor=PLATFORM, now=now)
    other = queues.create(cluster=second, name="other", actor=PLATFORM, now=now)
    queues.create_federated(name="both", members=[made.queue, other], actor=PLATFORM, now=now)
    reconcile()
    yield made
    controllers.reset()
    snapshot_cache.forget_all()


def reconcile(times: int = 1) -> None:
    for _ in range(times):
        for cluster in Cluster.objects.order_by("id"):
            controllers.reconcile(cluster)


def fill(world: World, queue: str, cpu: int = 4) -> Job:
    job = submit(world, spec(f"fills-{queue}", queue=queue, cpu=cpu))
    reconcile(4)
    assert has_started(job)
    return job


def submit_federated(world: World, name: str = "job", **more: Any) -> Job:
    return submit(world, spec(name, queue="both", **more))


def cluster_name(job: Job) -> str:
    return Job.objects.get(pk=job.pk).cluster.name


def chances(job: Job) -> dict[str, str]:
    placement = selectors.placement(job)
    assert placement is not None
    return {one["cluster"]: one["chance"] for one in placement.candidates}


def test_job_is_placed_on_the_cluster_where_it_starts_at_once(world: World) -> None:
    fill(world, "default")
    job = submit_federated(world, cpu=2)
    assert (job.cluster.name, job.queue.name, job.spec["queue"]) == ("second", "other", "both")
    assert chances(job) == {"second": "now", "first": "waits"}
    event = LoggedEvent.objects.get(kind="JobPlaced")
    assert (event.payload["cluster"], event.payload["federated_queue"]) == ("second", "both")
    reconcile(4)
    assert has_started(job)
    assert audit.findings() == []


def test_less_used_cluster_is_preferred(world: World) -> None:
    assert submit_federated(world, "a").cluster.name == "first"
    fill(world, "default", cpu=1)
    assert submit_federated(world, "b").cluster.name == "second"


def test_closed_paused_and_silent_clusters_are_skipped_with_a_reason(world: World) -> None:
    first, second = Cluster.objects.order_by("id")
    closing = {"by": world.alice, "actor": PLATFORM, "now": clock.now()}
    queues.set_state(world.queue, "closed", **closing)
    assert chances(submit_federated(world, "a")) == {"second": "now", "first": "closed"}
    queues.set_state(world.queue, "open", **closing)
    clusters.change(first, {"is_paused": True}, actor=PLATFORM, now=clock.now())
    assert chances(submit_federated(world, "b")) == {"second": "now", "first": "paused"}
    clusters.change(first, {"is_paused": False}, actor=PLATFORM, now=clock.now())
    now = clock.now()
    ClusterHealth.objects.create(cluster=second, checked_at=now, since=now, problem="silent")
    assert chances(submit_federated(world, "c")) == {"first": "now", "second": "away"}
    for queue in Queue.objects.all():
        queues.set_state(queue, "closed", **closing)
    with pytest.raises(Refused, match="All queues of both are closed"):
        submit_federated(world, "d")


def test_delegated_cluster_is_the_last_choice(world: World) -> None:
    for cluster in Cluster.objects.all():
        Cluster.objects.filter(pk=cluster.pk).update(kind="local")
    led = clusters.create(
        name="alpha", kind="kubernetes", config={"scheduler": "volcano"}, actor=PLATFORM, now=clock.now()
    )
    queue = queues.create(cluster=led, name="led", actor=PLATFORM, now=clock.now())
    members = [*Queue.objects.exclude(pk=queue.pk), queue]
    queues.change_federated(
        FederatedQueue.objects.get(), members=members, by=world.alice, actor=PLATFORM, now=clock.now()
    )
    job = submit_federated(world)
    assert job.cluster.name == "first"
    assert chances(job)["alpha"] == "delegated"


def test_cluster_that_does_not_answer_in_time_is_skipped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    resume = threading.Event()
    real = federation._prospect

    def slow(*arguments: Any) -> Any:
        if arguments[-1].cluster.name == "first":
            resume.wait()
            return federation._candidate(arguments[-1])
        return real(*arguments)

    monkeypatch.setattr(federation, "_prospect", slow)
    monkeypatch.setattr(federation, "PATIENCE_SECONDS", 1.0)
    members = list(Queue.objects.order_by("id"))
    found = federation.ask(spec(queue="both"), members, tenant=world.tenant, user=world.alice, is_timed=False)
    resume.set()
    assert found[0].chance == "unanswered"


def test_job_that_fits_no_cluster_is_refused(world: World) -> None:
    with pytest.raises(Invalid, match="largest node has 4"):
        submit_federated(world, cpu=5)


def test_job_is_placed_on_the_only_cluster_it_fits(world: World) -> None:
    Cluster.objects.filter(name="second").update(config=config(nodes=3))
    for cluster in Cluster.objects.filter(name="second"):
        clusters.observe_nodes(cluster, [NodeFacts(name, SIZE, {}) for name in ("n1", "n2")], now=clock.now())
    job = submit_federated(world, replicas=3, cpu=4)
    assert (job.cluster.name, chances(job)["first"]) == ("second", "never")


def test_waiting_job_moves_when_another_cluster_has_room(world: World) -> None:
    fills, other = fill(world, "default"), fill(world, "other")
    job = submit_federated(world)
    assert cluster_name(job) == "first"
    reconcile(2)
    assert federation.move_waiting() == 0
    abort_and_settle(world, other)
    reconcile(4)
    assert federation.move_waiting() == 1
    reassigned = Job.objects.get(pk=job.pk)
    assert (reassigned.cluster.name, reassigned.queue.name, reassigned.revision, reassigned.gang_phase) == (
        "second",
        "other",
        2,
        "pending",
    )
    reconcile(4)
    assert has_started(job)
    assert Pod.objects.filter(job=job).count() == 1
    event = LoggedEvent.objects.get(kind="JobReassigned")
    assert (event.payload["old_cluster"], event.payload["cluster"]) == ("first", "second")
    assert {f"cluster:{world.cluster.pk}", f"cluster:{reassigned.cluster_id}"} <= set(event.topics)
    assert federation.move_waiting() == 0
    assert not Pod.objects.filter(job=fills, stopping=True).exists()
    assert audit.findings() == []


def test_job_that_starts_on_its_cluster_stays(world: World) -> None:
    fill(world, "other")
    fills = fill(world, "default")
    job = submit_federated(world)
    reconcile(2)
    services.command(fills, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    assert cluster_name(job) == "first"
    reconcile(4)
    assert federation.move_waiting() == 0
    assert has_started(job)


def test_job_with_bound_pods_is_never_moved(world: World) -> None:
    job = submit_federated(world)
    reconcile(4)
    assert has_started(job)
    fresh, other = Job.objects.get(pk=job.pk), Queue.objects.get(name="other")
    assert not services.move(fresh, other, [], now=clock.now())
    Job.objects.filter(pk=job.pk).update(phase="pending", gang_phase="inqueue")
    assert not services.move(Job.objects.get(pk=job.pk), other, [], now=clock.now())
    assert cluster_name(job) == "first"


def test_decision_of_the_old_cluster_is_ignored_after_a_move(world: World) -> None:
    fill(world, "default")
    fill(world, "other")
    job = submit_federated(world)
    reconcile(2)
    before = Job.objects.get(pk=job.pk)
    epoch = controllers.get(before.cluster_id).epoch
    pods = list(before.pods.all())
    assert services.move(before, Queue.objects.get(name="other"), [], now=clock.now())
    late = JobDecision(
        before.pk, before.version, before.revision, GangPhase.RUNNING, binds={pod.pk: "n0" for pod in pods}
    )
    assert epoch is not None
    assert commit(before.cluster_id, epoch, [late], now=clock.now()) == 0
    assert cluster_name(job) == "second"
    assert not Pod.objects.filter(job=job).exclude(node="").exists()
    assert audit.findings() == []


def test_concurrent_moves_move_the_job_once(world: World) -> None:
    other = fill(world, "other")
    fill(world, "default")
    job = submit_federated(world)
    reconcile(2)
    abort_and_settle(world, other)
    reconcile(4)
    barrier, reassigned = threading.Barrier(2), []

    def move() -> None:
        try:
            barrier.wait()
            reassigned.append(federation.move_waiting())
        finally:
            connection.close()

    threads = [threading.Thread(target=move) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(reassigned) == 1
    assert LoggedEvent.objects.filter(kind="JobReassigned").count() == 1
    reconcile(4)
    assert has_started(job)
    assert audit.findings() == []


def test_only_queues_of_the_tenant_are_candidates(world: World) -> None:
    other_tenant = tenancy.create(slug="others", name="Others", actor=PLATFORM, now=clock.now())
    queue = Queue.objects.get(name="default")
    queues.change(queue, {}, tenants=[other_tenant], by=world.alice, actor=PLATFORM, now=clock.now())
    assert chances(submit_federated(world, "a")) == {"second": "now"}
    queues.change_federated(
        FederatedQueue.objects.get(), tenants=[other_tenant], by=world.alice, actor=PLATFORM, now=clock.now()
    )
    with pytest.raises(Refused, match="cannot use a queue “both”"):
        submit_federated(world, "b")


def test_federated_queue_needs_several_clusters_of_one_kind(world: World) -> None:
    now = clock.now()
    default, other = Queue.objects.order_by("id")
    beside = queues.create(cluster=world.cluster, name="beside", actor=PLATFORM, now=now)
    real = clusters.create(name="real", kind="local", config={}, actor=PLATFORM, now=now)
    on_real = queues.create(cluster=real, name="real", actor=PLATFORM, now=now)
    for members in ([default], [default, beside], [default, other, on_real]):
        with pytest.raises(Invalid):
            queues.create_federated(name="new", members=members, actor=PLATFORM, now=now)
    for name in ("both", "default"):
        with pytest.raises(Refused):
            queues.create_federated(name=name, members=[default, other], actor=PLATFORM, now=now)
    with pytest.raises(Refused):
        queues.create(cluster=real, name="both", actor=PLATFORM, now=now)


def test_jobs_stay_when_the_federated_queue_is_deleted(world: World) -> None:
    fill(world, "default")
    other = fill(world, "other")
    job = submit_federated(world)
    reconcile(2)
    queues.delete_federated(FederatedQueue.objects.get(), actor=PLATFORM, now=clock.now())
    abort_and_settle(world, other)
    reconcile(4)
    assert federation.move_waiting() == 0
    assert cluster_name(job) == "first"
