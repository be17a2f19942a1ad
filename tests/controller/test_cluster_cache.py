"""The cache of a process agrees with the rows after every write."""

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
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.lease_context import identity
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.scheduling import cache
from hekla.scheduling.cache import ClusterCache
from hekla.scheduling.snapshot import Snapshot


def rows(snapshot: Snapshot) -> tuple[object, ...]:
    """All of a snapshot but the counts in pending reasons: these are written without an event."""
    jobs = {uid: (job.phase, job.gang_phase, job.version) for uid, job in snapshot.jobs.items()}
    pods = {uid: (pod.phase, pod.node, pod.stopping, pod.version) for uid, pod in snapshot.pods.items()}
    return snapshot.state, jobs, pods


def refreshed(cluster_cache: ClusterCache, world: World, nominated: dict[str, str] | None = None) -> Snapshot:
    cluster_cache.refresh(world.cluster, nominated or {}, now=clock.now())
    return cluster_cache.snapshot(world.cluster)


@pytest.fixture
def agree(world: World) -> Callable[[], None]:
    """Fails if the cache differs from a fresh one."""
    cluster_cache = ClusterCache()

    def check() -> None:
        cluster_cache.usage.invalidate()  # stored without an event: the controller tells its own cache
        assert rows(refreshed(cluster_cache, world)) == rows(refreshed(ClusterCache(), world))

    return check


def test_cache_follows_jobs_through_their_phases(world: World, agree: Callable[[], None]) -> None:
    short = submit(world, "short", ["true"], replicas=2)
    long = submit(world, "long", ["sleep", "60"], replicas=2, seconds=600)
    blocked = submit(world, "blocked", ["true"], replicas=8)

    def done(*names: str) -> Callable[[], bool]:
        def look() -> bool:
            agree()
            return (phase(short), phase(long)) == names

        return look

    agree()
    world.reconcile_until(done("completed", "running"))
    assert Job.objects.get(pk=blocked.pk).waiting
    services.command(long, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(done("completed", "aborted"))
    services.command(long, LifecycleAction.RESUME_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(done("completed", "running"))
    services.command(blocked, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    agree()
    services.delete(short, user=world.alice, now=clock.now())
    agree()


def test_reconciliation_cost_does_not_grow_with_the_number_of_jobs(world: World) -> None:
    """With ten running jobs a new job costs as many queries as with one."""

    def submit_and_count(name: str) -> int:
        job = submit(world, name, ["sleep", "60"], seconds=6000, cpu="0.1")
        with CaptureQueriesContext(connection) as queries:
            controllers.reconcile(world.cluster)
        world.reconcile_until(lambda: phase(job) == "running")
        controllers.reconcile(world.cluster)
        return len(queries)

    submit_and_count("first")
    few = max(submit_and_count("second"), submit_and_count("third"))
    more = [submit(world, f"more-{at}", ["sleep", "60"], seconds=6000, cpu="0.1") for at in range(8)]
    world.reconcile_until(lambda: all(phase(job) == "running" for job in more))
    by_the_clock = 3  # nodes are read, and the lease is renewed, from time to time
    assert min(submit_and_count(f"last-{at}") for at in range(3)) <= few + by_the_clock


def test_clean_jobs_need_no_sync(world: World) -> None:
    jobs = [submit(world, f"job-{at}", ["true"], replicas=2) for at in range(3)]
    cluster_cache = ClusterCache()

    def check_clean_jobs() -> bool:
        cluster_cache.refresh(world.cluster, {}, now=clock.now())
        epoch = leases.take(world.cluster, identity(), now=clock.now())
        for entry in cluster_cache.dirty(clock.now()):
            if not entry.job.is_final and not services.would_sync(entry.job, entry.pods, clock.now()):
                address = backend_of(world.cluster).runner.address
                assert not services.sync(world.cluster.pk, epoch, entry.job.pk, address_of=address, now=clock.now())
        return all(phase(job) == "completed" for job in jobs)

    world.reconcile_until(check_clean_jobs)


def test_cache_follows_queues_and_nodes(world: World, agree: Callable[[], None]) -> None:
    agree()
    queues.change(world.queue, {"weight": 7}, by=world.alice, actor=PLATFORM, now=clock.now())
    agree()
    queues.set_state(world.queue, "draining", by=world.alice, actor=PLATFORM, now=clock.now())
    agree()
    values, now = {"parent": world.queue}, clock.now()
    queues.create(cluster=world.cluster, name="child", values=values, actor=PLATFORM, now=now)
    agree()
    controllers.reconcile(world.cluster)
    agree()
    clusters.cordon(Node.objects.get(), cordoned=True, actor=PLATFORM, now=clock.now())
    agree()


def test_cache_follows_quotas(world: World, agree: Callable[[], None]) -> None:
    agree()
    for resources in ({"cpu": "2"}, {"cpu": "3"}, {}):
        bounds = {"resources": resources}
        quotas.bound(tenant=world.tenant, of=Quota.Of.TENANT, user=None, bounds=bounds, actor=PLATFORM, now=clock.now())
        agree()


def test_cache_reads_queues_and_quotas_only_after_an_event_about_one(simulated: World) -> None:
    submit(simulated, "first", ["true"])
    cluster_cache = ClusterCache()
    refreshed(cluster_cache, simulated)
    submit(simulated, "second", ["true"])
    with CaptureQueriesContext(connection) as queries:
        refreshed(cluster_cache, simulated)
    assert not [query["sql"] for query in queries if 'FROM "quotas_' in query["sql"] or 'FROM "queues_' in query["sql"]]


def test_unchanged_jobs_keep_their_identity(world: World) -> None:
    """The engine skips jobs that are the same object as before."""
    first, second = submit(world, "one", ["true"]), submit(world, "two", ["true"])
    cluster_cache = ClusterCache()
    before = refreshed(cluster_cache, world).state.jobs
    services.command(second, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    after = refreshed(cluster_cache, world).state.jobs
    assert [job.name for job in before] == [first.name, second.name]
    assert after[0] is before[0]
    assert len(after) == 1 or after[1] is not before[1]


def test_unchanged_jobs_keep_their_identity_after_a_full_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(world, "one", ["true"])
    cluster_cache = ClusterCache()
    (before,) = refreshed(cluster_cache, world).state.jobs
    monkeypatch.setattr(cache, "_ALL_EVERY", timedelta(0))
    assert refreshed(cluster_cache, world).state.jobs[0] is before


def test_pending_reason_is_written_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = submit(world, "blocked", ["true"], replicas=8)
    world.reconcile_until(lambda: bool(Job.objects.get(pk=blocked.pk).waiting))
    written: list[object] = []

    def commit(_cluster: int, _epoch: int, decisions: list[object], **_more: object) -> int:
        written.extend(decisions)
        return 0

    monkeypatch.setattr(services, "commit", commit)
    controllers.reconcile(world.cluster)
    assert not written


def test_nominated_node_is_in_the_snapshot(world: World) -> None:
    job = submit(world, "long", ["sleep", "60"], seconds=600)
    world.reconcile_until(lambda: phase(job) == "running")
    Pod.objects.filter(job=job).update(phase="pending", node="")
    cluster_cache, pod = ClusterCache(), str(Pod.objects.get(job=job).pk)

    def nominated_node(nominated: dict[str, str]) -> str:
        (one,) = refreshed(cluster_cache, world, nominated).state.jobs
        return one.pods[0].nominated_node

    assert [nominated_node({}), nominated_node({pod: "n"}), nominated_node({pod: "n"}), nominated_node({})] == [
        "",
        "n",
        "n",
        "",
    ]


def test_too_many_events_cause_a_full_read(
    world: World, agree: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_MAX_EVENTS", 2)
    agree()
    jobs = [submit(world, f"job-{at}", ["true"]) for at in range(3)]
    agree()
    world.reconcile_until(lambda: all(phase(job) == "completed" for job in jobs))
    agree()


def test_subjects_of_events_are_listed_up_to_a_limit(world: World) -> None:
    before = event_log.last_number()
    job = submit(world, "one", ["true"])
    topic, last = f"cluster:{world.cluster.pk}", event_log.last_number()
    assert event_log.subjects(before, last, topic=topic, limit=10) == {f"job:{job.uid}"}
    assert event_log.subjects(before, last, topic="cluster:0", limit=10) == set()
    assert event_log.subjects(last, last, topic=topic, limit=10) == set()
    assert event_log.subjects(-1, last, topic=topic, limit=1) is None
