"""Jobs whose pods must be close in the network: from labels of nodes and the spec of the job to its placement."""

from typing import Any

from tests.controller.conftest import World
from tests.simulation.conftest import WorldFactory, abort_and_settle, found, settle, spec, submit

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.controllers import controllers
from hekla.engine.model import HyperNode
from hekla.lib import clock
from hekla.scheduling.cache import read_snapshot

__all__ = ["found"]
POLICY = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: binpack}, {name: network-topology-aware}]
"""
WITHOUT_PLUGIN = POLICY.replace(", {name: network-topology-aware}", "")
ROOMS = {"a1": 2, "a2": 3, "b1": 1, "b2": 1}
"""How many nodes of four CPUs each rack of the zones a and b has."""


def racks(policy: str = POLICY, labels: tuple[str, ...] = ("zone", "rack")) -> World:
    nodes = [
        {
            "name": f"{rack}-{number}",
            "labels": {"zone": rack[0], "rack": rack[1]},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"},
        }
        for rack, count in ROOMS.items()
        for number in range(count)
    ]
    config = {"nodes": nodes, "seed": 1, "speed": 1, "stop_seconds": 0, "topology_labels": list(labels)}
    world = World.found("simulated", config)
    clusters.set_policy(world.cluster, text=policy, note="", by=world.alice, actor=PLATFORM, now=clock.now())
    controllers.reconcile(world.cluster)
    return world


def near(replicas: int, name: str = "near", **topology: Any) -> Any:
    """A job whose pods fill a node each."""
    return spec(name, replicas=replicas, cpu="4", network_topology=topology)


def racks_of(job: Job) -> list[str]:
    return sorted(
        node.split("-")[0] for node in Pod.objects.filter(job=job).exclude(node="").values_list("node", flat=True)
    )


def codes(job: Job) -> list[str]:
    return [reason["code"] for reason in Job.objects.get(pk=job.pk).waiting]


def test_labels_of_nodes_are_hypernodes(found: WorldFactory) -> None:
    state = read_snapshot(racks().cluster, now=clock.now()).state
    b2 = frozenset({"b2-0"})
    assert state.hyper_nodes == (
        HyperNode("a/1", 1, frozenset({"a1-0", "a1-1"}), "rack"),
        HyperNode("a/2", 1, frozenset({"a2-0", "a2-1", "a2-2"}), "rack"),
        HyperNode("b/1", 1, frozenset({"b1-0"}), "rack"),
        HyperNode("b/2", 1, b2, "rack"),
        HyperNode("a", 2, frozenset({"a1-0", "a1-1", "a2-0", "a2-1", "a2-2"}), "zone"),
        HyperNode("b", 2, b2 | {"b1-0"}, "zone"),
    )


def test_hard_topology_keeps_a_job_in_one_rack(found: WorldFactory) -> None:
    world = racks()
    fits = submit(world, near(3, "fits", highest_tier_allowed=1))
    by_name = submit(world, near(2, "by-name", highest_tier_name="rack"))
    settle(world)
    assert (racks_of(fits), racks_of(by_name)) == (["a2"] * 3, ["a1"] * 2)
    waits = submit(world, near(2, "waits", highest_tier_allowed=1))
    wider = submit(world, near(2, "wider", highest_tier_name="zone"))
    settle(world)
    assert (racks_of(waits), codes(waits)) == ([], ["no_domain_fits"])
    assert racks_of(wider) == ["b1", "b2"]
    abort_and_settle(world, fits)
    assert racks_of(waits) == ["a2"] * 2


def test_soft_topology_is_as_close_as_possible(found: WorldFactory) -> None:
    world = racks()
    assert racks_of(placed(world, near(3, "three", mode="soft"))) == ["a2"] * 3
    assert racks_of(placed(world, near(4, "four", mode="soft"))) == ["a1", "a1", "b1", "b2"]


def placed(world: World, job_spec: Any) -> Job:
    job = submit(world, job_spec)
    settle(world)
    return job


def test_topology_that_cannot_be_followed_is_named(found: WorldFactory) -> None:
    world = racks(WITHOUT_PLUGIN)
    job, soft = submit(world, near(1, highest_tier_allowed=1)), submit(world, near(1, "soft", mode="soft"))
    settle(world)
    assert (racks_of(job), codes(job), len(racks_of(soft))) == ([], ["no_topology_plugin"], 1)
    clusters.set_policy(world.cluster, text=POLICY, note="", by=world.alice, actor=PLATFORM, now=clock.now())
    typo = submit(world, near(1, "typo", highest_tier_name="raack"))
    settle(world)
    assert (len(racks_of(job)), racks_of(typo), codes(typo)) == (1, [], ["unknown_tier"])


def test_without_labels_the_whole_cluster_is_close(found: WorldFactory) -> None:
    world = racks(WITHOUT_PLUGIN, labels=())
    job = submit(world, near(7, highest_tier_allowed=1))
    settle(world)
    assert len(racks_of(job)) == 7


def test_labels_named_later_count_at_once(found: WorldFactory) -> None:
    world = racks(labels=())
    world.cluster.refresh_from_db()
    config = world.cluster.config | {"topology_labels": ["rack"]}
    clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    world.cluster.refresh_from_db()
    job = submit(world, near(5, highest_tier_allowed=1))
    settle(world)
    assert codes(job) == ["no_domain_fits"]
    other = submit(world, near(4, "other", highest_tier_allowed=1))
    settle(world)
    assert sorted(name[1] for name in racks_of(other)) in (["1"] * 3, ["2"] * 4)


def divided(name: str, **policy: Any) -> Any:
    """A job of three partitions of two pods, which fill a node each."""
    return spec(name, replicas=6, cpu="4", partition_size=2, **policy)


def partitions_of(job: Job) -> dict[int, set[str]]:
    """The racks of each partition with a placed pod."""
    found: dict[int, set[str]] = {}
    for pod in Pod.objects.filter(job=job).exclude(node=""):
        found.setdefault(pod.index // 2, set()).add(pod.node.split("-")[0])
    return found


def test_each_partition_stays_in_a_rack(found: WorldFactory) -> None:
    world = racks()
    job = submit(world, divided("parts", min_partitions=2, partition_topology={"highest_tier_name": "rack"}))
    settle(world)
    placed = partitions_of(job)
    assert len(placed) == 2, "there is no rack for the third partition"
    assert sorted(placed.values(), key=sorted) == [{"a1"}, {"a2"}]
    assert len(racks_of(job)) == 4, "no partition is placed in part"


def test_job_waits_for_its_minimum_of_partitions(found: WorldFactory) -> None:
    world = racks()
    job = submit(world, divided("parts", min_partitions=3, partition_topology={"highest_tier_name": "rack"}))
    other = submit(world, divided("others", min_partitions=3))
    settle(world)
    assert racks_of(job) == [], "only two racks have room for a partition"
    assert len(racks_of(other)) == 6, "without a topology, partitions may be anywhere"
