"""Claims to devices on a real API server: from a manifest or a JobSpec to the allocated claim of a running pod."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient
from tests.controller.conftest import SIZE, World, describe
from tests.kubernetes.control_plane import ControlPlane
from tests.simulation.conftest import spec

from hekla.apps.clusters.models import ClusterObject
from hekla.apps.clusters.selectors import object_digests
from hekla.apps.job_history import labels
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.phases import PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.scheduling_inputs import Input
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.lib import clock
from hekla.scheduling import supplies

pytestmark = pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
API = "/apis/resource.k8s.io/v1"
Object = dict[str, Any]
SELECTOR = """
device.attributes['gpu.test'].model == 'h100' && device.capacity['gpu.test'].memory.isGreaterThan(quantity('70Gi'))
"""


def put(plane: ControlPlane, place: str, kind: str, name: str, spec: Object) -> None:
    body = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    plane.request("POST", f"{API}/{place}", body)


def device(name: str, model: str = "h100", memory: str = "80Gi") -> Object:
    attributes = {"model": {"string": model}, "index": {"int": int(name[-1])}}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}}


def add_slice(plane: ControlPlane, node: str, *devices: Object) -> None:
    """The devices of a node."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    put(
        plane,
        "resourceslices",
        "ResourceSlice",
        f"{node}-gpu.test",
        {"driver": "gpu.test", "nodeName": node, "pool": pool, "devices": list(devices)},
    )


def wanting(count: int = 1) -> Object:
    return {"devices": {"requests": [{"name": "card", "exactly": {"deviceClassName": "h100.test", "count": count}}]}}


@pytest.fixture
def one_machine(one_machine: Object, claims_namespace: str) -> Object:
    """The configuration of a cluster whose jobs may claim devices."""
    return {**one_machine, "devices": True, "resource_claims": ["one-card", "shared", "two-cards"]}


@pytest.fixture
def machines(world: World, one_machine: Object, small_cluster: ControlPlane) -> Iterator[list[str]]:
    """Two nodes: the first has two H100 and a smaller card, the second has none. A device class, templates, a claim."""
    more = small_cluster.add_nodes(1, allocatable=SIZE, labels=one_machine["node_labels"])
    labelled = "/api/v1/nodes?labelSelector=" + "hekla.dev/test=" + one_machine["namespace"]
    names = sorted(one["metadata"]["name"] for one in small_cluster.request("GET", labelled)["items"])
    add_slice(small_cluster, names[0], device("gpu-0", "a100"), device("gpu-1"), device("gpu-2"))
    selectors = [{"cel": {"expression": SELECTOR}}]
    opaque = {"opaque": {"driver": "gpu.test", "parameters": {"sharing": "none"}}}
    put(small_cluster, "deviceclasses", "DeviceClass", "h100.test", {"selectors": selectors, "config": [opaque]})
    own = f"namespaces/{one_machine['namespace']}"
    put(small_cluster, f"{own}/resourceclaimtemplates", "ResourceClaimTemplate", "one-card", {"spec": wanting()})
    put(small_cluster, f"{own}/resourceclaimtemplates", "ResourceClaimTemplate", "two-cards", {"spec": wanting(2)})
    put(small_cluster, f"{own}/resourceclaims", "ResourceClaim", "shared", wanting())
    yield names
    small_cluster.request("DELETE", f"{API}/deviceclasses/h100.test")
    for name in names:
        small_cluster.request("DELETE", f"{API}/resourceslices?fieldSelector=spec.nodeName={name}")
    small_cluster.remove_nodes(more)


def claims(plane: ControlPlane, world: World) -> list[Object]:
    return plane.request("GET", f"{API}/namespaces/{world.cluster.config['namespace']}/resourceclaims")["items"]


def devices_of(claim: Object) -> list[str]:
    allocation = claim.get("status", {}).get("allocation", {})
    return [one["device"] for one in allocation.get("devices", {}).get("results", ())]


def submit(world: World, name: str, replicas: int = 1, **claim: str) -> Job:
    wanted = spec(name, replicas, cpu="1", resource_claims=[{"name": "gpu", **claim}])
    return services.submit(spec=wanted, tenant=world.tenant, user=world.alice, now=clock.now())


def running(job: Job) -> list[str]:
    """The nodes of its running pods."""
    return list(Pod.objects.filter(job=job, phase=PodPhase.RUNNING).values_list("node", flat=True))


def end(world: World, job: Job) -> None:
    services.command(Job.objects.get(pk=job.pk), LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())


def test_claims_of_a_manifest_are_allocated_and_released(
    world: World, machines: list[str], small_cluster: ControlPlane
) -> None:
    container = {
        "name": "main",
        "image": "x",
        "command": ["sleep", "1000"],
        "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu", "request": "card"}]},
    }
    pod = {
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-card"}],
    }
    manifest = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"tasks": [{"name": "main", "replicas": 2, "template": {"spec": pod}}]},
    }
    client = APIClient()
    client.force_authenticate(world.alice)
    answer = client.post("/api/v1/jobs", yaml.safe_dump(manifest), content_type="application/yaml")
    assert answer.status_code == 201, answer.content
    job = Job.objects.get()
    world.reconcile_until(lambda: len(running(job)) == 2)
    assert running(job) == [machines[0]] * 2, describe()

    made = [claim for claim in claims(small_cluster, world) if claim["metadata"]["name"] != "shared"]
    assert sorted(name for claim in made for name in devices_of(claim)) == ["gpu-1", "gpu-2"]
    for claim in made:
        status = claim["status"]
        assert status["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == machines[:1]
        (config,) = status["allocation"]["devices"]["config"]
        assert (config["source"], config["requests"]) == ("FromClass", ["card"])
        assert config["opaque"]["parameters"] == {"sharing": "none"}
        assert [one["resource"] for one in status["reservedFor"]] == ["pods"]
    pods = small_cluster.request("GET", f"/api/v1/namespaces/{world.cluster.config['namespace']}/pods")["items"]
    assert [one["spec"]["containers"][0]["resources"]["claims"] for one in pods] == [
        [{"name": "gpu", "request": "card"}]
    ] * 2

    waits = submit(world, "waits", resource_claim_template_name="one-card")
    world.reconcile_until(lambda: bool(Job.objects.get(pk=waits.pk).waiting))
    assert "device" in labels.reason(Job.objects.get(pk=waits.pk).waiting[0])
    end(world, job)
    world.reconcile_until(lambda: running(waits) == [machines[0]])
    assert {kind for kind, _name in object_digests(world.cluster)} == {
        "ResourceSlice",
        "DeviceClass",
        "ResourceClaim",
        "ResourceClaimTemplate",
    }
    found = supplies.supplied(world.cluster, parse(DEFAULT_POLICY_TEXT))
    assert found[Input.DEVICES] == "ResourceSlices, DeviceClasses and ResourceClaims of the cluster"
    end(world, waits)
    world.reconcile_until(lambda: all(not devices_of(claim) for claim in claims(small_cluster, world)))


@pytest.mark.thorough
def test_pods_share_an_existing_claim(world: World, machines: list[str], small_cluster: ControlPlane) -> None:
    one, two = (submit(world, name, resource_claim_name="shared") for name in ("one", "two"))
    pair = submit(world, "pair", resource_claim_template_name="two-cards")
    world.reconcile_until(lambda: running(one) == running(two) == [machines[0]])
    (claim,) = [claim for claim in claims(small_cluster, world) if claim["metadata"]["name"] == "shared"]
    assert len(devices_of(claim)) == 1
    assert len(claim["status"]["reservedFor"]) == 2
    assert not running(pair), "one of the two cards is in use"
    end(world, one)
    end(world, two)
    world.reconcile_until(lambda: running(pair) == [machines[0]])


@pytest.mark.thorough
def test_missing_claim_keeps_the_job_waiting_until_it_exists(
    world: World, machines: list[str], small_cluster: ControlPlane
) -> None:
    own = f"namespaces/{world.cluster.config['namespace']}"
    small_cluster.request("DELETE", f"{API}/{own}/resourceclaims/shared")
    job = submit(world, "one", resource_claim_name="shared")
    world.reconcile_until(lambda: bool(Job.objects.get(pk=job.pk).waiting))
    assert "device claim not found" in labels.reason(Job.objects.get(pk=job.pk).waiting[0])
    put(small_cluster, f"{own}/resourceclaims", "ResourceClaim", "shared", wanting())
    world.reconcile_until(lambda: running(job) == [machines[0]])


@pytest.mark.thorough
def test_cluster_without_claiming_jobs_reads_no_devices(world: World, machines: list[str]) -> None:
    job = services.submit(spec=spec("one", cpu="1"), tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: bool(running(job)))
    assert not ClusterObject.objects.exists()
