"""A job that is submitted to several clusters by one name goes where it starts first, and on while it waits."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from tests.controller.conftest import World
from tests.simulation.conftest import begun, end, spec, submit

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, ClusterHealth, NodeFacts
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import audit, selectors, services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.decisions import JobDecision, commit
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue, Span
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
    """Two simulated clusters of four processors each, `first` and `second`, with a queue in each, and `both`."""
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
    queues.create_span(name="both", members=[made.queue, other], actor=PLATFORM, now=now)
    turn()
    yield made
    controllers.reset()
    snapshot_cache.forget_all()


def turn(times: int = 1) -> None:
    for _ in range(times):
        for cluster in Cluster.objects.order_by("id"):
            controllers.reconcile(cluster)


def fill(world: World, queue: str, cpu: int = 4) -> Job:
    job = submit(world, spec(f"fills-{queue}", queue=queue, cpu=cpu))
    turn(4)
    assert begun(job)
    return job


def sent(world: World, name: str = "job", **more: Any) -> Job:
    return submit(world, spec(name, queue="both", **more))


def where(job: Job) -> str:
    return Job.objects.get(pk=job.pk).cluster.name


def said(job: Job) -> dict[str, str]:
    placement = selectors.placement(job)
    assert placement is not None
    return {one["cluster"]: one["chance"] for one in placement.candidates}


def test_it_goes_where_it_starts_at_once(world: World) -> None:
    fill(world, "default")
    job = sent(world, cpu=2)
    assert (job.cluster.name, job.queue.name, job.spec["queue"]) == ("second", "other", "both")
    assert said(job) == {"second": "now", "first": "waits"}
    told = LoggedEvent.objects.get(kind="JobPlaced")
    assert (told.payload["cluster"], told.payload["federated_queue"]) == ("second", "both")
    turn(4)
    assert begun(job)
    assert audit.findings() == []


def test_of_those_that_would_start_it_the_one_that_is_used_less(world: World) -> None:
    assert sent(world, "a").cluster.name == "first"
    fill(world, "default", cpu=1)
    assert sent(world, "b").cluster.name == "second"


def test_closed_paused_and_distant_clusters_are_passed_over_and_that_is_said(world: World) -> None:
    first, second = Cluster.objects.order_by("id")
    closing = {"by": world.alice, "actor": PLATFORM, "now": clock.now()}
    queues.set_state(world.queue, "closed", **closing)
    assert said(sent(world, "a")) == {"second": "now", "first": "closed"}
    queues.set_state(world.queue, "open", **closing)
    clusters.change(first, {"is_paused": True}, actor=PLATFORM, now=clock.now())
    assert said(sent(world, "b")) == {"second": "now", "first": "paused"}
    clusters.change(first, {"is_paused": False}, actor=PLATFORM, now=clock.now())
    now = clock.now()
    ClusterHealth.objects.create(cluster=second, checked_at=now, since=now, problem="silent")
    assert said(sent(world, "c")) == {"first": "now", "second": "away"}
    for queue in Queue.objects.all():
        queues.set_state(queue, "closed", **closing)
    with pytest.raises(Refused, match="All queues of both are closed"):
        sent(world, "d")


def test_a_cluster_that_somebody_else_leads_is_asked_last(world: World) -> None:
    for cluster in Cluster.objects.all():
        Cluster.objects.filter(pk=cluster.pk).update(kind="local")
    led = clusters.create(
        name="alpha", kind="kubernetes", config={"scheduler": "volcano"}, actor=PLATFORM, now=clock.now()
    )
    queue = queues.create(cluster=led, name="led", actor=PLATFORM, now=clock.now())
    members = [*Queue.objects.exclude(pk=queue.pk), queue]
    queues.change_span(Span.objects.get(), members=members, by=world.alice, actor=PLATFORM, now=clock.now())
    job = sent(world)
    assert job.cluster.name == "first"
    assert said(job)["alpha"] == "delegated"


def test_who_does_not_answer_in_time_is_passed_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()
    real = federation._prospect

    def slow(*asked: Any) -> Any:
        if asked[-1].cluster.name == "first":
            goes_on.wait()
            return federation._candidate(asked[-1])
        return real(*asked)

    monkeypatch.setattr(federation, "_prospect", slow)
    monkeypatch.setattr(federation, "PATIENCE_SECONDS", 1.0)
    members = list(Queue.objects.order_by("id"))
    found = federation.ask(spec(queue="both"), members, tenant=world.tenant, user=world.alice, is_timed=False)
    goes_on.set()
    assert found[0].chance == "unanswered"


def test_what_fits_nowhere_is_refused_as_elsewhere(world: World) -> None:
    with pytest.raises(Invalid, match="largest node has 4"):
        sent(world, cpu=5)


def test_what_fits_one_cluster_only_goes_there(world: World) -> None:
    Cluster.objects.filter(name="second").update(config=config(nodes=3))
    for cluster in Cluster.objects.filter(name="second"):
        clusters.observe_nodes(cluster, [NodeFacts(name, SIZE, {}) for name in ("n1", "n2")], now=clock.now())
    job = sent(world, replicas=3, cpu=4)
    assert (job.cluster.name, said(job)["first"]) == ("second", "never")


def test_a_job_that_waits_goes_on_when_another_cluster_has_room(world: World) -> None:
    fills, other = fill(world, "default"), fill(world, "other")
    job = sent(world)
    assert where(job) == "first"
    turn(2)
    assert federation.move_waiting() == 0
    end(world, other)
    turn(4)
    assert federation.move_waiting() == 1
    moved = Job.objects.get(pk=job.pk)
    assert (moved.cluster.name, moved.queue.name, moved.revision, moved.gang_phase) == ("second", "other", 2, "pending")
    turn(4)
    assert begun(job)
    assert Pod.objects.filter(job=job).count() == 1
    told = LoggedEvent.objects.get(kind="JobReassigned")
    assert (told.payload["old_cluster"], told.payload["cluster"]) == ("first", "second")
    assert {f"cluster:{world.cluster.pk}", f"cluster:{moved.cluster_id}"} <= set(told.topics)
    assert federation.move_waiting() == 0
    assert not Pod.objects.filter(job=fills, stopping=True).exists()
    assert audit.findings() == []


def test_a_job_that_starts_where_it_is_stays_there(world: World) -> None:
    fill(world, "other")
    fills = fill(world, "default")
    job = sent(world)
    turn(2)
    services.command(fills, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    assert where(job) == "first"
    turn(4)
    assert federation.move_waiting() == 0
    assert begun(job)


def test_what_has_a_place_is_never_moved(world: World) -> None:
    job = sent(world)
    turn(4)
    assert begun(job)
    fresh, other = Job.objects.get(pk=job.pk), Queue.objects.get(name="other")
    assert not services.move(fresh, other, [], now=clock.now())
    Job.objects.filter(pk=job.pk).update(phase="pending", gang_phase="inqueue")
    assert not services.move(Job.objects.get(pk=job.pk), other, [], now=clock.now())
    assert where(job) == "first"


def test_a_decision_about_it_where_it_was_is_void(world: World) -> None:
    fill(world, "default")
    fill(world, "other")
    job = sent(world)
    turn(2)
    before = Job.objects.get(pk=job.pk)
    epoch = controllers.get(before.cluster_id).epoch
    pods = list(before.pods.all())
    assert services.move(before, Queue.objects.get(name="other"), [], now=clock.now())
    late = JobDecision(
        before.pk, before.version, before.revision, GangPhase.RUNNING, binds={pod.pk: "n0" for pod in pods}
    )
    assert epoch is not None
    assert commit(before.cluster_id, epoch, [late], now=clock.now()) == 0
    assert where(job) == "second"
    assert not Pod.objects.filter(job=job).exclude(node="").exists()
    assert audit.findings() == []


def test_two_that_move_it_at_once_move_it_once(world: World) -> None:
    other = fill(world, "other")
    fill(world, "default")
    job = sent(world)
    turn(2)
    end(world, other)
    turn(4)
    barrier, moved = threading.Barrier(2), []

    def look() -> None:
        try:
            barrier.wait()
            moved.append(federation.move_waiting())
        finally:
            connection.close()

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(moved) == 1
    assert LoggedEvent.objects.filter(kind="JobReassigned").count() == 1
    turn(4)
    assert begun(job)
    assert audit.findings() == []


def test_only_those_queues_count_that_the_tenant_may_use(world: World) -> None:
    others = tenancy.create(slug="others", name="Others", actor=PLATFORM, now=clock.now())
    queue = Queue.objects.get(name="default")
    queues.change(queue, {}, tenants=[others], by=world.alice, actor=PLATFORM, now=clock.now())
    assert said(sent(world, "a")) == {"second": "now"}
    queues.change_span(Span.objects.get(), tenants=[others], by=world.alice, actor=PLATFORM, now=clock.now())
    with pytest.raises(Refused, match="cannot use a queue “both”"):
        sent(world, "b")


def test_a_span_is_of_several_clusters_of_one_sort(world: World) -> None:
    now = clock.now()
    default, other = Queue.objects.order_by("id")
    beside = queues.create(cluster=world.cluster, name="beside", actor=PLATFORM, now=now)
    real = clusters.create(name="real", kind="local", config={}, actor=PLATFORM, now=now)
    on_real = queues.create(cluster=real, name="real", actor=PLATFORM, now=now)
    for members in ([default], [default, beside], [default, other, on_real]):
        with pytest.raises(Invalid):
            queues.create_span(name="new", members=members, actor=PLATFORM, now=now)
    for name in ("both", "default"):
        with pytest.raises(Refused):
            queues.create_span(name=name, members=[default, other], actor=PLATFORM, now=now)
    with pytest.raises(Refused):
        queues.create(cluster=real, name="both", actor=PLATFORM, now=now)


def test_jobs_stay_when_the_name_is_given_up(world: World) -> None:
    fill(world, "default")
    other = fill(world, "other")
    job = sent(world)
    turn(2)
    queues.delete_span(Span.objects.get(), actor=PLATFORM, now=clock.now())
    end(world, other)
    turn(4)
    assert federation.move_waiting() == 0
    assert where(job) == "first"
