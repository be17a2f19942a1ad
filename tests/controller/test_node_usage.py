"""Measured usage of nodes: from the backend to the decisions of the engine, to the pages and to REST."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import SIZE, World
from tests.controller.test_nodes import configure, node_of, runs, submit
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.metrics_server import metrics_api

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, Node, NodeUsageRow, UsageFacts
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.base import BackendError, NodeMetrics
from hekla.controller import node_usage
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.lease_context import LeaseContext
from hekla.controller.state import ReconcilerState, UsageMean
from hekla.domain.node_usage import CardMetrics
from hekla.domain.resources import Resources
from hekla.lib import clock
from hekla.scheduling.cache import ClusterCache

POLICY = "actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: gang}, {name: predicates}]}, {plugins: [%s]}]"
on_simulated = pytest.mark.parametrize("world", ["simulated"], indirect=True)
on_kubernetes = pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
on_local = pytest.mark.parametrize("world", ["local"], indirect=True)
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
WHOLE = Resources.parse({"cpu": "10", "memory": "10Gi"})


def follow_usage(world: World, plugin: str = "{name: usage}") -> None:
    clusters.set_policy(world.cluster, POLICY % plugin, note="", by=None, actor=PLATFORM, now=clock.now())


def as_admin(world: World, client: Client) -> Client:
    world.alice.platform_role = "admin"
    world.alice.save()
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    return client


@on_simulated
def test_busy_node_gets_no_pod_and_the_reason_says_so(world: World, client: Client) -> None:
    follow_usage(world)
    busy = {"name": "busy", "allocatable": {**SIZE, "cpu": "64"}, "usage": {"cpu": "60", "memory": "1Gi"}}
    configure(world, busy, {"name": "idle", "usage": {"cpu": "500m"}})
    small, large = submit(world), submit(world, "large", cpu="8")
    world.reconcile_until(lambda: runs(small) and bool(Job.objects.get(pk=large.pk).waiting))
    assert node_of(small) == "idle"
    assert "1 node: too busy: CPU" in labels.reason(Job.objects.get(pk=large.pk).waiting[0])

    as_admin(world, client)
    policy = client.get(f"{reverse('clusters:policy')}?cluster={world.cluster.name}").content.decode()
    assert "From: usage in the cluster&#x27;s configuration" in policy
    assert "94 % CPU, 13 % memory" in client.get(reverse("clusters:nodes")).content.decode()
    found = {node["name"]: node["usage"] for node in client.get("/api/v1/nodes").json()}
    assert (round(found["busy"]["cpu"]), found["busy"]["cards"]) == (94, [])

    configure(world, {**busy, "usage": {"cpu": "1"}}, {"name": "idle", "usage": {"cpu": "500m"}})
    world.reconcile_until(lambda: runs(large))
    assert node_of(large) == "busy"


@on_simulated
def test_pods_use_a_part_of_their_requests(world: World) -> None:
    configure(world, {"name": "n", "usage": {"cpu": "1"}}, pod_usage=0.5, run_seconds={"min": 1e6, "max": 1e6})
    job = submit(world, cpu="2")
    world.reconcile_until(lambda: runs(job))
    controllers.reset()
    controllers.reconcile(world.cluster)
    assert NodeUsageRow.objects.get().cpu == pytest.approx(50)


@on_simulated
def test_old_usage_is_not_used(world: World, client: Client) -> None:
    follow_usage(world)
    configure(world, {"name": "n", "usage": {"cpu": "4"}})
    job = submit(world)
    world.reconcile_until(lambda: bool(Job.objects.get(pk=job.pk).waiting))
    configure(world, {"name": "n"})
    NodeUsageRow.objects.update(at=clock.now() - timedelta(minutes=6))
    world.reconcile_until(lambda: runs(job))
    as_admin(world, client)
    assert client.get("/api/v1/nodes").json()[0]["usage"] is None
    assert "% CPU" not in client.get(reverse("clusters:nodes")).content.decode()


@on_local
def test_this_machine_is_measured(world: World, client: Client) -> None:
    follow_usage(world, "{name: usage, arguments: {thresholds: {cpu: 1000, mem: 0}}}")
    world.reconcile_until(NodeUsageRow.objects.exists)
    job = submit(world)
    world.reconcile_until(lambda: bool(Job.objects.get(pk=job.pk).waiting))
    assert "1 node: too busy: memory" in labels.reason(Job.objects.get(pk=job.pk).waiting[0])
    row = NodeUsageRow.objects.get()
    assert 0 <= row.cpu <= 100
    assert 0 < row.memory <= 100
    as_admin(world, client)
    policy = client.get(f"{reverse('clusters:policy')}?cluster={world.cluster.name}").content.decode()
    assert "From: the processes and cards of this machine" in policy


@on_kubernetes
def test_metrics_api_of_a_cluster_decides_where_a_pod_is_placed(
    world: World, one_machine: dict[str, Any], small_cluster: ControlPlane, client: Client
) -> None:
    """The API server is real, and asks a server of the test, which says what it is set to."""
    follow_usage(world)
    more = small_cluster.add_nodes(1, allocatable=SIZE, labels=one_machine["node_labels"])
    with metrics_api(small_cluster) as server:
        controllers.reset()
        machines = [one["metadata"] for one in small_cluster.request("GET", "/api/v1/nodes")["items"]]
        labels = one_machine["node_labels"].items()
        first, second = sorted(one["name"] for one in machines if labels <= one["labels"].items())
        # Before the first look of Hekla, which looks again only after a while.
        server.usage = {first: {"cpu": "3900000000n", "memory": "2097152Ki"}, second: {"cpu": "100m", "memory": "1Gi"}}
        world.reconcile_until(lambda: NodeUsageRow.objects.count() == 2)
        jobs = [submit(world, name, image="registry/tool", cpu="2") for name in ("one", "two")]
        world.reconcile_until(lambda: all(map(runs, jobs)))
        assert [node_of(job) for job in jobs] == [second, second]
        assert round(NodeUsageRow.objects.get(node__name=first).cpu) == 98

        as_admin(world, client)
        policy = client.get(f"{reverse('clusters:policy')}?cluster={world.cluster.name}").content.decode()
        assert "From: the cluster&#x27;s metrics API (metrics.k8s.io)" in policy
        assert "98 % CPU, 25 % memory" in client.get(reverse("clusters:nodes")).content.decode()
        backend_of(world.cluster).close()
    small_cluster.remove_nodes(more)


@on_simulated
def test_nodes_with_unchanged_usage_are_the_same_objects(world: World) -> None:
    configure(world, {"name": "n", "count": 3, "usage": {"cpu": "1"}})
    controllers.reconcile(world.cluster)
    cache = ClusterCache()

    def read() -> dict[str, Any]:
        cache.refresh(world.cluster, {}, now=clock.now())
        return {node.name: node for node in cache.snapshot(world.cluster).state.nodes}

    before, number = read(), event_log.last_number()
    NodeUsageRow.objects.filter(node__name="n-1").update(cpu=80)
    assert read() == before
    cache.usage.invalidate()
    read()
    facts = UsageFacts("n-1", clock.now(), 80, 0, 4000, 2**33)
    cache.usage.update([facts])
    after = read()
    assert after["n-1"].usage.measured_at == facts.at.timestamp()
    assert [name for name in after if after[name] is not before[name]] == ["n-1"]
    assert (after["n-0"].usage.cpu, after["n-1"].usage.cpu) == (25, 80)
    clusters.cordon(Node.objects.get(name="n-2"), cordoned=True, actor=PLATFORM, now=clock.now())
    again = read()
    assert [name for name in again if again[name] is not after[name]] == ["n-2"]
    assert event_log.last_number() == number + 1


# Co-location.

COLOCATION = """\
actions: "enqueue, allocate, shuffle"
tiers:
- plugins: [{name: gang}, {name: predicates}]
- plugins: [{name: colocation, arguments: {oversubscription.cpu: 60, evictingCPUHighWatermark: 80}}]
"""


@on_simulated
def test_offline_pods_use_what_online_pods_leave_idle_until_they_need_it(world: World, client: Client) -> None:
    clusters.set_policy(world.cluster, COLOCATION, note="", by=None, actor=PLATFORM, now=clock.now())
    lasting = {"pod_usage": 0.25, "run_seconds": {"min": 1e6, "max": 1e6}, "stop_seconds": 0}
    configure(world, {"name": "n", "usage": {}}, **lasting)
    online = submit(world, "online", cpu="4")
    world.reconcile_until(lambda: runs(online))
    offline = submit(world, "offline", cpu="1", annotations={"volcano.sh/qos-level": "BE"})
    controllers.reset()
    world.reconcile_until(lambda: bool(Job.objects.get(pk=offline.pk).waiting))
    assert node_of(offline) == "", "the usage does not show the online pod yet"
    Pod.objects.filter(job=online).update(bound_at=clock.now() - timedelta(hours=1))
    controllers.reset()
    world.reconcile_until(lambda: runs(offline))

    configure(world, {"name": "n", "usage": {"cpu": "2500m"}}, **lasting)
    world.reconcile_until(lambda: not runs(offline))
    assert runs(online)
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("jobs:detail", args=[offline.uid])).content.decode()
    assert "Co-location: online work needs the node (shuffle, allowed by colocation)" in page
    world.reconcile_until(lambda: bool(Job.objects.get(pk=offline.pk).waiting))
    assert "too busy: CPU" in labels.reason(Job.objects.get(pk=offline.pk).waiting[0])


# What is stored, and when.


class Meter:
    """Measures what it is set to."""

    def __init__(self) -> None:
        self.found: Sequence[NodeMetrics] = ()

    def measure_nodes(self) -> Sequence[NodeMetrics]:
        return self.found


@pytest.fixture
def meter(world: World) -> Meter:
    configure(world, {"name": "n", "count": 3})
    controllers.reconcile(world.cluster)
    return Meter()


def measured(cluster: Cluster, meter: Meter, means: dict[str, UsageMean], *found: NodeMetrics) -> list[str] | None:
    meter.found = found
    epoch = controllers.get(cluster.pk).epoch
    assert epoch is not None
    lease = LeaseContext(cluster.pk, epoch, backend=None, state=ReconcilerState())  # type: ignore[arg-type]
    stored = node_usage.measure_nodes(lease, meter, means)
    return None if stored is None else [facts.name for facts in stored]


def at(minutes: float, cpu: float = 10.0, *cards: CardMetrics, name: str = "n-0") -> NodeMetrics:
    return NodeMetrics(name, NOON + timedelta(minutes=minutes), cpu, 20.0, WHOLE, cards)


@on_simulated
def test_only_noticeable_changes_are_written_and_the_time_before_it_is_old(world: World, meter: Meter) -> None:
    means: dict[str, UsageMean] = {}
    assert measured(world.cluster, meter, means, at(0), at(0, name="unknown")) == ["n-0", "unknown"]
    assert measured(world.cluster, meter, means, at(0.5, 12)) == []
    assert measured(world.cluster, meter, means, at(1, 90)) == ["n-0"]
    assert 10 < NodeUsageRow.objects.get().cpu < 30
    assert measured(world.cluster, meter, means, at(2.9, NodeUsageRow.objects.get().cpu)) == []
    assert measured(world.cluster, meter, means, at(5, NodeUsageRow.objects.get().cpu)) == ["n-0"]
    row = NodeUsageRow.objects.get()
    assert (row.at, row.whole_cpu, row.whole_memory) == (NOON + timedelta(minutes=5), 10_000, 10 * 2**30)


@on_simulated
def test_nodes_that_were_not_measured_for_a_moment_are_not_written_again(world: World, meter: Meter) -> None:
    means: dict[str, UsageMean] = {}
    measured(world.cluster, meter, means, at(0), at(0, name="n-1"))
    assert measured(world.cluster, meter, means) is None
    assert measured(world.cluster, meter, means, at(0.25)) == []
    assert measured(world.cluster, meter, means, at(0.5), at(0.5, name="n-1")) == []
    measured(world.cluster, meter, means, at(6))
    assert means.keys() == {"n-0"}


@on_simulated
def test_mean_follows_a_lasting_change_within_minutes(world: World, meter: Meter) -> None:
    means: dict[str, UsageMean] = {}
    measured(world.cluster, meter, means, at(0, 0))
    for quarter in range(1, 41):
        measured(world.cluster, meter, means, at(quarter / 4, 100))
        if quarter == 1:
            assert means["n-0"].cpu < 15
    assert means["n-0"].cpu > 80


@on_simulated
def test_cards_are_stored_and_hostile_numbers_are_bounded(world: World, meter: Meter) -> None:
    nan = float("nan")
    card = CardMetrics("nvidia.com/gpu", 0, 63.0, 2048)
    hostile = [CardMetrics("x" * 1000, 0, 1), CardMetrics("x", 1, float("inf"), 2**70), CardMetrics("x", 2, nan)]
    measured(world.cluster, meter, {}, at(0, nan, card, *hostile, *[card] * 100), at(0, 1e300, name="n-1"))
    first, second = NodeUsageRow.objects.order_by("node__name")
    assert (first.cpu, second.cpu) == (0, 1000)
    assert first.cards[0] == {"resource": "nvidia.com/gpu", "index": 0, "busy": 63, "memory_mib": 2048}
    assert [card["busy"] for card in first.cards[1:3]] == [1000, 0]
    assert len(first.cards) < 70


@on_simulated
def test_noticeable_change_of_a_card_is_written(world: World, meter: Meter) -> None:
    means: dict[str, UsageMean] = {}

    def stored(minutes: float, *cards: tuple[int, float]) -> bool:
        found = at(minutes, 10, *(CardMetrics("nvidia.com/gpu", index, busy) for index, busy in cards))
        return bool(measured(world.cluster, meter, means, found))

    changes = [
        stored(0, (0, 50)),
        stored(0.2, (0, 51)),
        stored(0.4, (0, 60)),
        stored(0.6, (0, 60), (1, 0)),
        stored(0.8),
    ]
    assert changes == [True, False, True, True, True]


@on_simulated
def test_failing_backend_changes_nothing(world: World, meter: Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    means: dict[str, UsageMean] = {}
    measured(world.cluster, meter, means, at(0))

    def fail() -> Sequence[NodeMetrics]:
        raise BackendError("no answer")

    monkeypatch.setattr(meter, "measure_nodes", fail)
    assert measured(world.cluster, meter, means) is None
    assert NodeUsageRow.objects.count() == 1
    assert means.keys() == {"n-0"}


@on_simulated
def test_rows_that_only_get_old_are_not_written_together(world: World, meter: Meter) -> None:
    names, means = [f"n-{number}" for number in range(400)], dict[str, UsageMean]()
    polls = [measured(world.cluster, meter, means, *(at(n / 4, name=name) for name in names)) or [] for n in range(17)]
    assert [len(stored) for stored in polls[:9]] == [400, *[0] * 8]
    assert sorted(name for stored in polls[9:] for name in stored) == sorted(names), "each once, before it is too old"
    assert all(25 < len(stored) < 75 for stored in polls[9:])
