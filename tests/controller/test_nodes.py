"""Taints, annotations and images of nodes, from the backend to the decisions of the engine."""

from typing import Any

import pytest
from tests.controller.conftest import SIZE, World
from tests.controller.test_cluster_controller import phase
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import labels
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.base import NodeInfo
from hekla.controller import nodes
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.domain.network_topology import HyperNodeLevel
from hekla.domain.resources import Resources
from hekla.domain.taints import Taint
from hekla.lib import clock
from hekla.scheduling.cache import ClusterCache

GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
on_simulated = pytest.mark.parametrize("world", ["simulated"], indirect=True)
on_kubernetes = pytest.mark.parametrize("world", ["kubernetes"], indirect=True)


def configure(world: World, *nodes: dict[str, Any], **more: Any) -> None:
    config = {"nodes": [{"allocatable": SIZE, **node} for node in nodes], "seed": 1, "speed": 10, **more}
    clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    controllers.reset()


def submit(world: World, name: str = "one", *, cpu: str = "1", image: str = "", **more: Any) -> Job:
    env = {"HEKLA_SIM_SECONDS": "1000"}
    task: dict[str, Any] = {"name": "main", "command": ["x"], "resources": {"cpu": cpu}, "env": env, "image": image}
    spec = JobSpec.parse({"name": name, "tasks": [task], **more})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def node_of(job: Job) -> str:
    return Pod.objects.get(job=job).node


def runs(job: Job) -> bool:
    return phase(job) == "running"


@on_simulated
def test_tainted_node_gets_no_pod_and_the_reason_names_the_taint(world: World) -> None:
    configure(world, {"name": "tainted", "allocatable": {**SIZE, "cpu": "64"}, "taints": [GPU]}, {"name": "free"})
    small, large = submit(world), submit(world, "large", cpu="8")
    world.reconcile_until(lambda: runs(small))
    assert node_of(small) == "free"
    (reason,) = Job.objects.get(pk=large.pk).waiting
    assert "1 node: untolerated taint gpu" in labels.reason(reason)
    configure(world, {"name": "tainted", "allocatable": {**SIZE, "cpu": "64"}}, {"name": "free"})
    world.reconcile_until(lambda: runs(large))
    assert node_of(large) == "tainted"


@on_simulated
def test_soft_taint_is_avoided(world: World) -> None:
    soft = {**GPU, "effect": "PreferNoSchedule"}
    configure(world, {"name": "a", "taints": [soft]}, {"name": "b"})
    jobs = [submit(world, f"job-{at}", cpu="2") for at in range(3)]
    world.reconcile_until(lambda: all(map(runs, jobs)))
    assert sorted(map(node_of, jobs)) == ["a", "b", "b"]


@on_simulated
def test_pods_prefer_a_node_with_their_image(world: World) -> None:
    configure(world, {"name": "a"}, {"name": "b", "images": {"tool:latest": "8Gi"}})
    job, other = submit(world, image="registry/other"), submit(world, "other", image="tool")
    world.reconcile_until(lambda: runs(job) and runs(other))
    assert (node_of(job), node_of(other)) == ("a", "b")


@on_simulated
def test_annotations_reach_the_plugins_that_read_them(world: World) -> None:
    text = "actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: data-locality}]}]"
    clusters.set_policy(world.cluster, text, note="", by=None, actor=PLATFORM, now=clock.now())
    annotations = {"hekla.io/cached-datasets": "imagenet", "example.com/other": "x"}
    configure(world, {"name": "a"}, {"name": "b", "annotations": annotations})
    job = submit(world, annotations={"hekla.io/datasets": "imagenet"})
    world.reconcile_until(lambda: runs(job))
    assert node_of(job) == "b"
    assert Node.objects.get(name="b").annotations == {"hekla.io/cached-datasets": "imagenet"}


@on_simulated
def test_unchanged_nodes_are_the_same_objects(world: World) -> None:
    config = {"taints": [GPU], "annotations": {"hekla.io/cached-datasets": "a"}, "images": {"tool:1": "1Gi"}}
    configure(world, {"name": "n", "count": 3, **config})
    controllers.reconcile(world.cluster)
    cache = ClusterCache()

    def read() -> dict[str, Any]:
        cache.refresh(world.cluster, {}, now=clock.now())
        return {node.name: node for node in cache.snapshot(world.cluster).state.nodes}

    before = read()
    assert before["n-0"].taints == (Taint("gpu", "yes"),)
    assert before["n-0"].images is before["n-1"].images
    assert before["n-0"].images == {"tool:1": 2**30}
    clusters.cordon(Node.objects.get(name="n-1"), cordoned=True, actor=PLATFORM, now=clock.now())
    after = read()
    assert [name for name in after if after[name] is not before[name]] == ["n-1"]
    assert after["n-1"].images is before["n-0"].images


def test_what_is_stored_of_a_node_is_bounded() -> None:
    facts = nodes._facts(
        NodeInfo(
            "n",
            Resources({"cpu": 1000}),
            taints=[*(Taint(f"k{at}") for at in range(100)), Taint("\0")],
            annotations={"hekla.io/cached-datasets": "x" * 100_000, "hekla.io/gpu-links": "\ud800", "other": "x"},
            images={"\0": 1, "x" * 1000: 1} | {f"tool:{at}": at for at in range(1000)},
            hypernodes=[
                *(HyperNodeLevel("x", 10**9), HyperNodeLevel("\0", 1), HyperNodeLevel("x" * 1000, 1)),
                *(HyperNodeLevel(f"rack-{at}", at, "rack") for at in range(100)),
            ],
        )
    )
    assert len(facts.hypernodes) == nodes.MAX_LEVELS - 3
    assert facts.hypernodes[0] == {"name": "rack-0", "tier": 0, "tier_name": "rack"}
    assert len(facts.taints) == nodes.MAX_TAINTS
    assert facts.annotations == {}
    assert (len(facts.images), "tool:0" in facts.images) == (nodes.MAX_IMAGES - 2, True)


@on_kubernetes
def test_tainted_node_of_kubernetes_is_ready_with_its_taint(world: World, small_cluster: ControlPlane) -> None:
    controllers.reconcile(world.cluster)
    (name,) = Node.objects.values_list("name", flat=True)

    def patch(fields: dict[str, Any]) -> None:
        content_type = "application/merge-patch+json"
        small_cluster.request("PATCH", f"/api/v1/nodes/{name}", fields, content_type=content_type)

    patch({"spec": {"taints": [GPU]}, "metadata": {"annotations": {"hekla.io/gpu-links": "[[0]]", "other": "x"}}})
    controllers.reset()  # nodes are read again
    job = submit(world, image="registry/tool")
    world.reconcile_until(lambda: bool(Job.objects.get(pk=job.pk).waiting))
    node = Node.objects.get()
    assert (node.is_ready, node.message, node.taints) == (True, "", ["gpu=yes:NoSchedule"])
    assert node.annotations == {"hekla.io/gpu-links": "[[0]]"}
    assert "untolerated taint gpu" in labels.reason(Job.objects.get(pk=job.pk).waiting[0])
    assert node_of(job) == ""
    patch({"spec": {"taints": None}})
    controllers.reset()
    world.reconcile_until(lambda: runs(job))


@on_kubernetes
def test_images_of_a_node_are_read_without_an_event(world: World, small_cluster: ControlPlane) -> None:
    controllers.reconcile(world.cluster)
    (name,) = Node.objects.values_list("name", flat=True)
    images = [{"names": ["registry/tool@sha256:00", "registry/tool:1"], "sizeBytes": 5_000_000_000}]
    content_type = "application/merge-patch+json"
    body = {"status": {"images": images}}
    small_cluster.request("PATCH", f"/api/v1/nodes/{name}/status", body, content_type=content_type)
    known = LoggedEvent.objects.filter(kind="NodeChanged").count()
    controllers.reset()
    controllers.reconcile(world.cluster)
    assert Node.objects.get().images == {"registry/tool@sha256:00": 5_000_000_000, "registry/tool:1": 5_000_000_000}
    assert LoggedEvent.objects.filter(kind="NodeChanged").count() == known
