"""What a process keeps of the rows is what the rows say, whatever is written to them meanwhile."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase, submit

from hekla.apps.clusters import leases
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.lease_context import identity
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.scheduling import cache
from hekla.scheduling.cache import ClusterCache
from hekla.scheduling.snapshot import Snapshot


def rows(shown: Snapshot) -> tuple[object, ...]:
    """All but the numbers of why jobs wait: those are written without an event, by who reads them again."""
    jobs = {uid: (job.phase, job.gang_phase, job.version) for uid, job in shown.jobs.items()}
    pods = {uid: (pod.phase, pod.node, pod.stopping, pod.version) for uid, pod in shown.pods.items()}
    return shown.state, jobs, pods


def taken(picture: ClusterCache, world: World, nominated: dict[str, str] | None = None) -> Snapshot:
    picture.refresh(world.cluster, nominated or {}, now=clock.now())
    return picture.snapshot(world.cluster)


@pytest.fixture
def agree(world: World) -> Callable[[], None]:
    """Whether the kept picture shows what a new one does."""
    kept = ClusterCache()

    def check() -> None:
        assert rows(taken(kept, world)) == rows(taken(ClusterCache(), world))

    return check


def test_it_follows_jobs_through_their_lives(world: World, agree: Callable[[], None]) -> None:
    short = submit(world, "short", ["true"], replicas=2)
    long = submit(world, "long", ["sleep", "60"], replicas=2, seconds=600)
    blocked = submit(world, "blocked", ["true"], replicas=8)

    def done(*names: str) -> Callable[[], bool]:
        def look() -> bool:
            agree()
            return (phase(short), phase(long)) == names

        return look

    agree()
    world.turn_until(done("completed", "running"))
    assert Job.objects.get(pk=blocked.pk).waiting
    services.command(long, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.turn_until(done("completed", "aborted"))
    services.command(long, LifecycleAction.RESUME_JOB, user=world.alice, now=clock.now())
    world.turn_until(done("completed", "running"))
    services.command(blocked, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    agree()
    services.delete(short, user=world.alice, now=clock.now())
    agree()


def test_a_turn_costs_what_happened_and_not_what_there_is(world: World) -> None:
    """As many questions to the database where ten jobs run as where one does."""

    def come(name: str) -> int:
        job = submit(world, name, ["sleep", "60"], seconds=6000, cpu="0.1")
        with CaptureQueriesContext(connection) as asked:
            controllers.reconcile(world.cluster)
        world.turn_until(lambda: phase(job) == "running")
        controllers.reconcile(world.cluster)
        return len(asked)

    come("first")
    few = max(come("second"), come("third"))
    for at in range(8):
        come(f"more-{at}")
    by_the_clock = 3  # nodes are read, and the lease is renewed, from time to time
    assert min(come(f"last-{at}") for at in range(3)) <= few + by_the_clock


def test_a_job_that_is_not_looked_at_again_would_not_have_moved(world: World) -> None:
    jobs = [submit(world, f"job-{at}", ["true"], replicas=2) for at in range(3)]
    kept = ClusterCache()

    def nothing_is_missed() -> bool:
        kept.refresh(world.cluster, {}, now=clock.now())
        epoch = leases.take(world.cluster, identity(), now=clock.now())
        for seen in kept.dirty(clock.now()):
            if not seen.job.is_final and not services.would_sync(seen.job, seen.pods, clock.now()):
                address = backend_of(world.cluster).runner.address
                assert not services.sync(world.cluster.pk, epoch, seen.job.pk, address_of=address, now=clock.now())
        return all(phase(job) == "completed" for job in jobs)

    world.turn_until(nothing_is_missed)


def test_it_follows_queues_and_nodes(world: World, agree: Callable[[], None]) -> None:
    agree()
    queues.change(world.queue, {"weight": 7}, by=world.alice, actor=PLATFORM, now=clock.now())
    agree()
    controllers.reconcile(world.cluster)
    agree()
    clusters.cordon(Node.objects.get(), cordoned=True, actor=PLATFORM, now=clock.now())
    agree()


def test_what_is_as_it_was_is_the_very_same(world: World) -> None:
    """The engine tells by that what it need not look at."""
    first, second = submit(world, "one", ["true"]), submit(world, "two", ["true"])
    kept = ClusterCache()
    before = taken(kept, world).state.jobs
    services.command(second, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    after = taken(kept, world).state.jobs
    assert [job.name for job in before] == [first.name, second.name]
    assert after[0] is before[0]
    assert len(after) == 1 or after[1] is not before[1]


def test_so_it_is_when_all_is_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(world, "one", ["true"])
    kept = ClusterCache()
    (before,) = taken(kept, world).state.jobs
    monkeypatch.setattr(cache, "_ALL_EVERY", timedelta(0))
    assert taken(kept, world).state.jobs[0] is before


def test_why_a_job_waits_is_written_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = submit(world, "blocked", ["true"], replicas=8)
    world.turn_until(lambda: bool(Job.objects.get(pk=blocked.pk).waiting))
    written: list[object] = []

    def commit(_cluster: int, _epoch: int, decisions: list[object], **_more: object) -> int:
        written.extend(decisions)
        return 0

    monkeypatch.setattr(services, "commit", commit)
    controllers.reconcile(world.cluster)
    assert not written


def test_a_place_kept_for_a_pod_is_told(world: World) -> None:
    job = submit(world, "long", ["sleep", "60"], seconds=600)
    world.turn_until(lambda: phase(job) == "running")
    Pod.objects.filter(job=job).update(phase="pending", node="")
    kept, pod = ClusterCache(), str(Pod.objects.get(job=job).pk)

    def told(nominated: dict[str, str]) -> str:
        (one,) = taken(kept, world, nominated).state.jobs
        return one.pods[0].nominated_node

    assert [told({}), told({pod: "n"}), told({pod: "n"}), told({})] == ["", "n", "n", ""]


def test_after_too_much_all_is_read_again(
    world: World, agree: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_MAX_EVENTS", 2)
    agree()
    jobs = [submit(world, f"job-{at}", ["true"]) for at in range(3)]
    agree()
    world.turn_until(lambda: all(phase(job) == "completed" for job in jobs))
    agree()


def test_what_events_are_about_is_told_up_to_a_limit(world: World) -> None:
    before = event_log.last_number()
    job = submit(world, "one", ["true"])
    topic, last = f"cluster:{world.cluster.pk}", event_log.last_number()
    assert event_log.subjects(before, last, topic=topic, limit=10) == {f"job:{job.uid}"}
    assert event_log.subjects(before, last, topic="cluster:0", limit=10) == set()
    assert event_log.subjects(last, last, topic=topic, limit=10) == set()
    assert event_log.subjects(-1, last, topic=topic, limit=1) is None
