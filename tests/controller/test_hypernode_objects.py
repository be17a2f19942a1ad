"""HyperNode objects of a real API server: from their members to the placement of jobs, and to the pages."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import SIZE, World
from tests.controller.test_network_topology import POLICY
from tests.kubernetes.control_plane import ControlPlane
from tests.simulation.conftest import spec

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.kubernetes import health
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.scheduling import topology
from hekla.scheduling.cache import read_snapshot

pytestmark = pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/hekla-machines"
PLACE = "/apis/topology.volcano.sh/v1alpha1/hypernodes"


@pytest.fixture
def machines(world: World, one_machine: dict[str, Any], small_cluster: ControlPlane) -> Iterator[list[str]]:
    """Four nodes of four CPUs, in a cluster with a policy for network topologies."""
    more = small_cluster.add_nodes(3, allocatable=SIZE, labels=one_machine["node_labels"])
    clusters.set_policy(world.cluster, text=POLICY, note="", by=world.alice, actor=PLATFORM, now=clock.now())
    controllers.reconcile(world.cluster)
    yield sorted(Node.objects.filter(cluster=world.cluster).values_list("name", flat=True))
    small_cluster.remove_nodes(more)


@pytest.fixture
def plane(small_cluster: ControlPlane, topology_kinds: None) -> Iterator[ControlPlane]:
    """The API server, which knows HyperNode objects."""
    yield small_cluster
    for one in small_cluster.request("GET", PLACE)["items"]:
        small_cluster.request("DELETE", f"{PLACE}/{one['metadata']['name']}")


def member(kind: str = "Node", **selector: Any) -> dict[str, Any]:
    return {"type": kind, "selector": selector}


def put(plane: ControlPlane, name: str, tier: int, *members: dict[str, Any], tier_name: str = "") -> None:
    """Creates or changes a hypernode."""
    spec = {"tier": tier, "tierName": tier_name, "members": list(members)}
    known = {one["metadata"]["name"] for one in plane.request("GET", PLACE)["items"]}
    if name in known:
        plane.request("PATCH", f"{PLACE}/{name}", {"spec": spec}, content_type="application/merge-patch+json")
    else:
        body = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}}
        plane.request("POST", PLACE, body | {"spec": spec})


def exact(name: str, kind: str = "Node") -> dict[str, Any]:
    return member(kind, exactMatch={"name": name})


def build_racks(plane: ControlPlane, machines: list[str]) -> None:
    """Two racks of two nodes, in one hall."""
    put(plane, "rack-a", 1, exact(machines[0]), exact(machines[1]), tier_name="rack")
    put(plane, "rack-b", 1, member(regexMatch={"pattern": f"^({machines[2]}|{machines[3]})$"}), tier_name="rack")
    put(plane, "hall", 2, exact("rack-a", "HyperNode"), exact("rack-b", "HyperNode"), tier_name="hall")


def submit(world: World, name: str, replicas: int, **topology: Any) -> Job:
    """A job whose pods fill a node each."""
    wanted = spec(name, replicas=replicas, cpu="4", network_topology=topology)
    return services.submit(spec=wanted, tenant=world.tenant, user=world.alice, now=clock.now())


def nodes_of(job: Job) -> list[str]:
    return sorted(Pod.objects.filter(job=job).exclude(node="").values_list("node", flat=True))


def codes(job: Job) -> list[str]:
    return [reason["code"] for reason in Job.objects.get(pk=job.pk).waiting]


def refresh(world: World) -> None:
    """Reads the nodes again now, not within ten seconds."""
    controllers.reset()
    controllers.reconcile(world.cluster)


def test_objects_decide_where_a_job_is_placed(world: World, machines: list[str], plane: ControlPlane) -> None:
    build_racks(plane, machines)
    refresh(world)
    pair, three = submit(world, "pair", 2, highest_tier_name="rack"), submit(world, "three", 3, highest_tier_allowed=1)
    world.reconcile_until(lambda: len(nodes_of(pair)) == 2 and bool(codes(three)))
    assert nodes_of(pair) in (machines[:2], machines[2:])
    assert codes(three) == ["no_domain_fits"]
    services.command(pair, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Job.objects.get(pk=pair.pk).phase == JobPhase.ABORTED)
    assert nodes_of(three) == []

    before = read_snapshot(world.cluster, now=clock.now()).state
    put(plane, "rack-b", 1, exact(machines[3]), tier_name="rack")
    put(plane, "rack-a", 1, member(regexMatch={"pattern": "|".join(machines[:3])}), tier_name="rack")
    refresh(world)
    world.reconcile_until(lambda: len(nodes_of(three)) == 3)
    assert nodes_of(three) == machines[:3]
    after = read_snapshot(world.cluster, now=clock.now()).state
    assert (after.nodes, len(after.hyper_nodes)) == (before.nodes, 3)
    assert after.hyper_nodes != before.hyper_nodes


def test_pages_and_rest_show_hypernodes_and_their_source(
    world: World, machines: list[str], plane: ControlPlane, client: Client
) -> None:
    world.alice.platform_role = "admin"
    world.alice.save()
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    policy = f"{reverse('clusters:policy')}?cluster={world.cluster.name}"
    assert "HyperNode objects of the cluster" not in client.get(policy).content.decode()
    build_racks(plane, machines)
    refresh(world)
    assert "From: HyperNode objects of the cluster" in client.get(policy).content.decode()
    page = client.get(reverse("clusters:nodes")).content.decode()
    assert re.findall(r"<small[^>]*>(rack-.)<", page) == ["rack-a", "rack-b"]
    node = Node.objects.get(cluster=world.cluster, name=machines[3])
    page = client.get(reverse("clusters:node", args=[node.pk])).content.decode()
    assert [f"<code>{name}</code>" in page for name in ("rack-a", "rack-b", "hall")] == [False, True, True]
    nodes = client.get("/api/v1/nodes").json()
    found = {node["name"]: node["hypernodes"] for node in nodes}
    rack, hall = {"name": "rack-b", "tier": 1, "tier_name": "rack"}, {"name": "hall", "tier": 2, "tier_name": "hall"}
    assert found[machines[3]] == [rack, hall]
    assert topology.tier_names(world.cluster) == ["hall", "rack"]


def test_labels_named_in_the_configuration_count_instead(
    world: World, machines: list[str], plane: ControlPlane
) -> None:
    build_racks(plane, machines)
    refresh(world)
    assert Node.objects.exclude(hypernodes=[]).count() == 4
    config = world.cluster.config | {"topology_labels": ["kubernetes.io/hostname"]}
    clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    refresh(world)
    assert not Node.objects.exclude(hypernodes=[]).exists()
    state = read_snapshot(Cluster.objects.get(), now=clock.now()).state
    assert [one.name for one in state.hyper_nodes] == machines


def test_health_check_reports_problems_of_objects(world: World, machines: list[str], plane: ControlPlane) -> None:
    put(plane, "bad", 1, member(regexMatch={"pattern": "("}), exact("bad", "HyperNode"))
    backend = backend_of(world.cluster).parts
    found = health.look(backend.config, backend.context)
    assert (found.missing, found.topology_faults) == ((), ("member bad", "expression bad"))


def test_without_the_right_nodes_are_read_and_the_right_is_named(
    world: World, machines: list[str], plane: ControlPlane
) -> None:
    build_racks(plane, machines)
    role = plane.request("GET", ROLE)["rules"]
    plane.request(
        "PATCH",
        ROLE,
        {"rules": [one for one in role if one["resources"] != ["hypernodes"]]},
        content_type="application/merge-patch+json",
    )
    try:
        backend = backend_of(world.cluster).parts
        plane.wait_until(lambda: health.look(backend.config, backend.context).missing == ("list hypernodes *",))
        refresh(world)
        assert Node.objects.filter(cluster=world.cluster, hypernodes=[]).count() == 4
        job = submit(world, "three", 3, highest_tier_allowed=1)
        world.reconcile_until(lambda: len(nodes_of(job)) == 3)
    finally:
        plane.request("PATCH", ROLE, {"rules": role}, content_type="application/merge-patch+json")
