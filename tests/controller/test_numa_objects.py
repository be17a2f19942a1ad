"""Numatopology objects of a real API server: from the cells of a node to the placement of a task, and to the pages."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import SIZE, World
from tests.kubernetes.control_plane import ControlPlane
from tests.simulation.conftest import spec

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import labels
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.controllers import controllers
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
PLACE = "/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies"
POLICY = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: numa-aware}]
"""
CPUS = {str(cpu): {"numa": cpu // 2, "socket": 0, "core": cpu} for cpu in range(4)}


@pytest.fixture
def machines(
    world: World, one_machine: dict[str, Any], small_cluster: ControlPlane, topology_kinds: None
) -> Iterator[list[str]]:
    """Two nodes of four CPUs, in a cluster with a policy for NUMA cells."""
    more = small_cluster.add_nodes(1, allocatable=SIZE, labels=one_machine["node_labels"])
    clusters.set_policy(world.cluster, text=POLICY, note="", by=world.alice, actor=PLATFORM, now=clock.now())
    controllers.reconcile(world.cluster)
    yield sorted(Node.objects.filter(cluster=world.cluster).values_list("name", flat=True))
    small_cluster.remove_nodes(more)
    for one in small_cluster.request("GET", PLACE)["items"]:
        small_cluster.request("DELETE", f"{PLACE}/{one['metadata']['name']}")


def put(plane: ControlPlane, node: str, free: str) -> None:
    """Creates the object of a node with two cells of two CPUs, or changes its free CPUs."""
    numares = {"cpu": {"allocatable": free, "capacity": 4}}
    if node in {one["metadata"]["name"] for one in plane.request("GET", PLACE)["items"]}:
        change = {"spec": {"numares": numares}}
        plane.request("PATCH", f"{PLACE}/{node}", change, content_type="application/merge-patch+json")
        return
    policies = {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node"}
    body = {"apiVersion": "nodeinfo.volcano.sh/v1alpha1", "kind": "Numatopology", "metadata": {"name": node}}
    plane.request("POST", PLACE, body | {"spec": {"cpuDetail": CPUS, "policies": policies, "numares": numares}})


def submit(world: World, name: str) -> Job:
    """A job of one pod whose two CPUs must be in one cell."""
    wanted = spec(name, cpu="2", resources={"memory": "1Gi"}, topology_policy="single-numa-node")
    return services.submit(spec=wanted, tenant=world.tenant, user=world.alice, now=clock.now())


def node_of(job: Job) -> str:
    return Pod.objects.filter(job=job).exclude(node="").values_list("node", flat=True).first() or ""


def refresh(world: World) -> None:
    """Reads the nodes again now, not within ten seconds."""
    controllers.reset()
    controllers.reconcile(world.cluster)


def test_cells_decide_where_a_task_is_placed(
    world: World, machines: list[str], small_cluster: ControlPlane, client: Client
) -> None:
    first, second = machines
    put(small_cluster, first, "0,2")
    put(small_cluster, second, "0,2-3")
    refresh(world)
    world.reconcile_until(lambda: Node.objects.filter(cluster=world.cluster).exclude(numa={}).count() == 2)
    job = submit(world, "one")
    world.reconcile_until(lambda: bool(node_of(job)))
    assert node_of(job) == second

    put(small_cluster, second, "0")
    refresh(world)
    world.reconcile_until(lambda: Node.objects.get(name=second).numa["cells"][1]["free"] == 0)
    waits = submit(world, "two")
    world.reconcile_until(lambda: bool(Job.objects.get(pk=waits.pk).waiting))
    assert node_of(waits) == ""
    assert "numa" in labels.reason(Job.objects.get(pk=waits.pk).waiting[0]).lower()
    put(small_cluster, first, "0-3")
    refresh(world)
    world.reconcile_until(lambda: node_of(waits) == first)

    world.alice.platform_role = "admin"
    world.alice.save()
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    policy = client.get(f"{reverse('clusters:policy')}?cluster={world.cluster.name}").content.decode()
    assert "From: Numatopology objects of the cluster" in policy
    assert "From: resources of the task" in policy
    address = reverse("clusters:node", args=[Node.objects.get(cluster=world.cluster, name=first).pk])
    assert "2 of 2 CPUs free" in client.get(address).content.decode()
    found = {node["name"]: node["numa"] for node in client.get("/api/v1/nodes").json()}
    assert found[first]["topology_policy"] == "single-numa-node"
