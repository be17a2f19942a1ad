"""What tasks ask of their nodes, from a manifest over REST to the pods, and to the choice of nodes."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient
from tests.controller.conftest import World
from tests.controller.test_job_faults import GONE, damage
from tests.kubernetes.control_plane import ControlPlane
from tests.simulation.conftest import WorldFactory, abort_and_settle, found, settle, spec, submit

from hekla.apps.accounts import services as accounts
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.kubernetes import names
from hekla.controller.controllers import controllers
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.pages.jobs import pod_context
from hekla.scheduling.cache import read_snapshot

__all__ = ["found"]
RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
RUNTIME = "hekla-test-settings"
MANIFEST: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "asks"},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "runtimeClassName": RUNTIME,
                "imagePullSecrets": [{"name": "registry"}],
                "securityContext": {"runAsUser": 2000, "fsGroup": 3000, "supplementalGroups": [7]},
                "containers": [
                    {
                        "name": "main",
                        "image": "private.example/tool:1",
                        "ports": [{"containerPort": 80, "hostPort": 30080}],
                        "securityContext": {"readOnlyRootFilesystem": True},
                        "volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "a", "readOnly": True}],
                    }
                ],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-sets"}}],
            }
        }
    },
}
"""A manifest that needs the listed objects of `OPEN`."""
OPEN = {
    "runtime_classes": [RUNTIME],
    "pull_secrets": ["registry"],
    "host_ports": ["30080"],
    "claims": ["data-sets"],
}


def port(number: int = 30080, **more: Any) -> dict[str, Any]:
    return {"host_ports": [{"host_port": number, "container_port": number, **more}]}


def nodes(job: Job) -> list[str]:
    return sorted(Pod.objects.filter(job=job).exclude(node="").values_list("node", flat=True))


def reasons(job: Job) -> set[str]:
    return {name for reason in Job.objects.get(pk=job.pk).waiting for name in reason["nodes"]}


@pytest.fixture
def alice(world: World) -> APIClient:
    token = accounts.create_token(world.alice, name="test", lifetime=timedelta(hours=1), now=clock.now())
    return APIClient(HTTP_AUTHORIZATION=f"Bearer {token}")


@pytest.fixture
def runtime_class(small_cluster: ControlPlane) -> Iterator[None]:
    small_cluster.request("POST", RUNTIME_CLASSES, {"metadata": {"name": RUNTIME}, "handler": "runc"})
    yield
    small_cluster.request("DELETE", f"{RUNTIME_CLASSES}/{RUNTIME}")


def post(client: APIClient, manifest: dict[str, Any]) -> Any:
    return client.generic("POST", "/api/v1/jobs", json.dumps(manifest), content_type="application/yaml")


@pytest.mark.kubernetes
@pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
@pytest.mark.usefixtures("runtime_class")
def test_manifest_reaches_the_pod_unchanged(world: World, alice: APIClient, small_cluster: ControlPlane) -> None:
    config = world.cluster.config
    clusters.change(world.cluster, {"config": {**config, **OPEN}}, actor=PLATFORM, now=clock.now())
    namespace = f"/api/v1/namespaces/{config['namespace']}"
    storage = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data-sets"}, "spec": storage}
    small_cluster.request("POST", f"{namespace}/persistentvolumeclaims", claim)
    answer = post(alice, MANIFEST)
    assert answer.status_code == 201, answer.content.decode()
    job = Job.objects.get(name="asks")
    world.reconcile_until(lambda: Pod.objects.filter(job=job, phase="running").exists())
    (made,) = small_cluster.request("GET", f"{namespace}/pods?labelSelector={names.JOB}={job.uid.hex}")["items"]
    spec, (container,) = made["spec"], made["spec"]["containers"]
    assert (spec["runtimeClassName"], spec["imagePullSecrets"]) == (RUNTIME, [{"name": "registry"}])
    assert spec["securityContext"].items() >= {"runAsUser": 2000, "fsGroup": 3000, "supplementalGroups": [7]}.items()
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["ports"] == [{"containerPort": 80, "hostPort": 30080, "protocol": "TCP"}]
    (mount,) = [one for one in container["volumeMounts"] if one["mountPath"] == "/data"]
    assert (mount["subPath"], mount["readOnly"]) == ("a", True)
    (volume,) = [one for one in spec["volumes"] if one["name"] == mount["name"]]
    assert volume["persistentVolumeClaim"]["claimName"] == "data-sets"
    described = alice.get(f"/api/v1/jobs/{job.uid}").json()["spec"]["tasks"][0]
    assert (described["runtime_class"], described["security_context"]["run_as_user"]) == (RUNTIME, 2000)


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
@pytest.mark.parametrize(
    ("pod", "container", "at"),
    [
        ({"hostNetwork": True}, {}, "hostNetwork"),
        ({"hostPID": True}, {}, "hostPID"),
        ({}, {"securityContext": {"privileged": True}}, "containers[0].securityContext.privileged"),
        ({}, {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}, "capabilities.add"),
    ],
)
def test_power_over_the_node_is_refused_by_name(alice: APIClient, pod: Any, container: Any, at: str) -> None:
    (usual,) = MANIFEST["spec"]["template"]["spec"]["containers"]
    whole = {**MANIFEST["spec"]["template"]["spec"], **pod, "containers": [{**usual, **container}]}
    answer = post(alice, {**MANIFEST, "spec": {"template": {"spec": whole}}})
    assert answer.status_code == 400
    assert at in answer.content.decode()
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "world", ["kubernetes", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in ("local", "simulated"))],
    indirect=True,
)  # fmt: skip
def test_two_pods_of_one_node_never_have_the_same_port(world: World) -> None:
    if world.cluster.kind == "kubernetes":
        config = {**world.cluster.config, "host_ports": ["30080"]}
        clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    command = ["sleep", "600"]
    first = submit(world, spec("first", command=command, grace_seconds=1, **port()))
    world.reconcile_until(lambda: Pod.objects.filter(job=first, phase="running").exists())
    second = submit(world, spec("second", command=command, grace_seconds=1, **port()))
    udp = submit(world, spec("udp", command=command, grace_seconds=1, **port(protocol="UDP")))
    world.reconcile_until(lambda: Pod.objects.filter(job=udp, phase="running").exists())
    assert (nodes(second), reasons(second)) == ([], {"port in use"})
    services.command(first, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Pod.objects.filter(job=second, phase="running").exists())
    for job in (second, udp):
        services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: not Pod.objects.exclude(phase__in=["succeeded", "failed", "lost"]).exists())


def test_replicas_with_a_port_are_on_different_nodes(found: WorldFactory) -> None:
    world = found({}, {}, {})
    job = submit(world, spec(replicas=3, **port()))
    more = submit(world, spec("more", **port(host_ip="10.0.0.1")))
    other = submit(world, spec("other", **port(30081)))
    settle(world)
    assert nodes(job) == ["n0", "n1", "n2"]
    assert (nodes(more), reasons(more)) == ([], {"port in use"})
    assert len(nodes(other)) == 1
    abort_and_settle(world, job)
    assert len(nodes(more)) == 1


def test_pods_of_a_task_with_a_port_share_their_constraints(found: WorldFactory) -> None:
    world = found({})
    submit(world, spec(replicas=2, min_available=1, **port()))
    settle(world)
    (group,) = read_snapshot(world.cluster, now=clock.now()).state.jobs
    first, second = group.pods
    assert first.constraints is second.constraints
    assert [one.port for one in first.constraints.host_ports] == [30080]


def test_running_pods_of_a_broken_job_keep_their_ports(found: WorldFactory) -> None:
    world = found({})
    broken = submit(world, spec("broken", **port()))
    settle(world)
    damage(broken, plugins=GONE)
    late = submit(world, spec("late", **port()))
    settle(world)
    assert (nodes(broken), nodes(late), reasons(late)) == (["n0"], [], {"port in use"})


@pytest.mark.parametrize("world", ["local"], indirect=True)
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"runtime_class": "kata"}, "The runtime class “kata” is one of a Kubernetes cluster"),
        ({"pull_secrets": ["registry"]}, "The pull secret “registry” is one of a Kubernetes cluster"),
        ({"security_context": {"run_as_user": 5, "run_as_non_root": True}}, "cannot have run_as_user or run_as_non"),
        ({"host_ports": [{"host_port": 8080, "container_port": 80}]}, "port 80 of a pod cannot be port 8080"),
    ],
)
def test_local_cluster_refuses_by_name_what_it_cannot_do(world: World, fields: dict[str, Any], message: str) -> None:
    job = submit(world, spec(**fields))
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.FAILED)
    pod = Pod.objects.get(job=job)
    assert pod.reason == "StartRefused"
    assert message in pod.message
    controllers.reconcile(world.cluster)


@pytest.mark.kubernetes
@pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
def test_overhead_and_nodes_of_a_runtime_class_count(
    world: World, alice: APIClient, small_cluster: ControlPlane
) -> None:
    """On four CPUs there is room for one pod of one CPU and an overhead of two; its node needs the label."""
    heavy = "hekla-test-heavy"
    config = world.cluster.config
    own_labels = config["node_labels"]
    body = {"metadata": {"name": heavy}, "handler": "runc", "overhead": {"podFixed": {"cpu": "2"}}}
    small_cluster.request("POST", RUNTIME_CLASSES, body | {"scheduling": {"nodeSelector": own_labels}})
    try:
        clusters.change(
            world.cluster, {"config": {**config, "runtime_classes": [heavy]}}, actor=PLATFORM, now=clock.now()
        )
        one, two = (submit(world, spec(name, cpu="1", runtime_class=heavy)) for name in ("one", "two"))
        world.reconcile_until(lambda: Pod.objects.filter(phase="running").exists())
        world.reconcile_until(lambda: bool(Job.objects.filter(waiting__0__nodes__has_key="insufficient cpu")))
        (waits,) = Job.objects.exclude(waiting=[])
        assert waits.waiting[0]["need"]["cpu"] == "3"
        running = Pod.objects.get(phase="running")
        assert running.job_id in (one.pk, two.pk)
        (node,) = alice.get("/api/v1/nodes").json()
        assert node["used"]["cpu"] == "3"
        made = small_cluster.request("GET", f"/api/v1/namespaces/{config['namespace']}/pods")["items"]
        assert [pod["spec"]["overhead"] for pod in made] == [{"cpu": "2"}]
        assert pod_context.page(running, may_act=True, now=clock.now())["overhead"] == "2 CPU"
    finally:
        small_cluster.request("DELETE", f"{RUNTIME_CLASSES}/{heavy}")


def test_changed_overhead_of_a_simulated_runtime_class_counts(found: WorldFactory) -> None:
    world = found({"cpu": "4"})
    one = submit(world, spec("one", cpu="1", runtime_class="kata"))
    settle(world)
    (group,) = read_snapshot(world.cluster, now=clock.now()).state.jobs
    assert group.pods[0].request["cpu"] == 1000
    config = {**world.cluster.config, "runtime_classes": {"kata": {"cpu": "2"}}}
    clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    world.cluster.refresh_from_db()
    settle(world)
    two = submit(world, spec("two", cpu="2"))
    settle(world)
    assert (len(nodes(one)), nodes(two)) == (1, [])
    assert Job.objects.get(pk=two.pk).waiting
    clusters.change(world.cluster, {"config": {**config, "runtime_classes": {}}}, actor=PLATFORM, now=clock.now())
    settle(world)
    assert len(nodes(two)) == 1
