"""A cluster with external pods for tests: its namespaces, pods, PodGroups and budgets."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.controller import conftest
from tests.controller.conftest import SIZE, World
from tests.controller.test_device_claims import API as CLAIMS_API
from tests.controller.test_device_claims import add_slice, device, put, wanting
from tests.kubernetes.control_plane import ControlPlane, RequestRefused
from tests.kubernetes.plugin import grant_in_namespace, new_namespace

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.lib import clock

Object = dict[str, Any]
_GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"


@pytest.fixture(autouse=True)
def long_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits longer: the cluster's controllers for budgets and deletions also need time."""
    monkeypatch.setattr(conftest, "LAST_SECONDS", 120.0)


@pytest.fixture
def external_namespace(small_cluster: ControlPlane) -> Iterator[str]:
    """A foreign namespace in which Hekla may only place pods."""
    with new_namespace(small_cluster, "others-") as name:
        grant_in_namespace(small_cluster, "rights-adopted.yaml", name)
        yield name


@pytest.fixture
def unlisted_namespace(small_cluster: ControlPlane) -> Iterator[str]:
    """A namespace that the cluster's configuration does not name."""
    with new_namespace(small_cluster, "others-") as name:
        yield name


@pytest.fixture
def shared(
    small_cluster: ControlPlane,
    granted_namespace: str,
    external_namespace: str,
    transactional_db: None,
    settings: Any,
    tmp_path: Path,
) -> Iterator[World]:
    """A node of this test with four CPUs, and a cluster that also places external pods there."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    labels = {"hekla.dev/test": granted_namespace}
    machines = small_cluster.add_nodes(1, allocatable=SIZE, labels=labels)
    (tmp_path / "kubeconfigs").mkdir()
    (tmp_path / "kubeconfigs" / "test").write_text(json.dumps(small_cluster.kubeconfig(small_cluster.user_token)))
    external_pods = {"namespaces": {external_namespace: "lab"}, "queue": "default", "owner": "alice"}
    config = {
        "kubeconfig": "test",
        "namespace": granted_namespace,
        "node_labels": labels,
        "external_pods": external_pods,
    }
    world = World.found("kubernetes", config)
    yield world
    backend_of(world.cluster).close()
    controllers.reset()
    small_cluster.remove_nodes(machines)


@pytest.fixture
def devices(shared: World, small_cluster: ControlPlane, external_namespace: str) -> Iterator[str]:
    """One card, a class and a template of a claim for it. Yields the name of its node."""
    grant_in_namespace(small_cluster, "rights-devices.yaml", shared.cluster.config["namespace"])
    config = {**shared.cluster.config, "devices": True}
    clusters.change(shared.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    shared.cluster.refresh_from_db()
    (name,) = [node.name for node in backend_of(shared.cluster).nodes()]
    add_slice(small_cluster, name, device("gpu-0"))
    put(small_cluster, "deviceclasses", "DeviceClass", "h100.test", {"selectors": []})
    templates = f"namespaces/{external_namespace}/resourceclaimtemplates"
    put(small_cluster, templates, "ResourceClaimTemplate", "one-card", {"spec": wanting()})
    yield name
    small_cluster.request("DELETE", f"{CLAIMS_API}/deviceclasses/h100.test")
    small_cluster.request("DELETE", f"{CLAIMS_API}/resourceslices?fieldSelector=spec.nodeName={name}")


@pytest.fixture(scope="module")
def pod_groups(small_cluster: ControlPlane) -> Iterator[None]:
    """Volcano's kind PodGroup, without Volcano."""
    place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    body = {
        "metadata": {"name": "podgroups.scheduling.volcano.sh"},
        "spec": {
            "group": "scheduling.volcano.sh",
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"},
            "versions": [version],
        },
    }
    path = f"{place}/podgroups.scheduling.volcano.sh"
    was_missing = not exists(small_cluster, path)
    if was_missing:
        small_cluster.request("POST", place, body)
    small_cluster.wait_until(lambda: exists(small_cluster, _GROUPS.format("default")), 60.0)
    yield
    if was_missing:
        small_cluster.request("DELETE", path)
        small_cluster.wait_until(lambda: not exists(small_cluster, path), 60.0)


def exists(plane: ControlPlane, path: str) -> bool:
    try:
        plane.request("GET", path)
    except RequestRefused:
        return False
    return True


def pod(name: str, *, cpu: str = "1", seconds: str = "", exit_code: str = "", **more: Any) -> Object:
    annotations = dict(more.pop("annotations", {}))
    annotations |= {"hekla.dev/test-seconds": f"{seconds}s"} if seconds else {}
    annotations |= {"hekla.dev/test-exit": exit_code} if exit_code else {}
    container = {"name": "any", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    owners = {"ownerReferences": [more.pop("owner")]} if "owner" in more else {}
    return {
        "metadata": {"name": name, "labels": more.pop("labels", {}), "annotations": annotations, **owners},
        "spec": {"schedulerName": "hekla", "restartPolicy": "Never", "containers": [container], **more},
    }


def new_owner(plane: ControlPlane, namespace: str, name: str) -> Object:
    """A reference to an existing object that counts as the controller of pods."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    uid = plane.request("POST", path, {"metadata": {"name": name}})["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": True}


def create_pod(plane: ControlPlane, namespace: str, body: Object) -> Object:
    return plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)


def get_pod(plane: ControlPlane, namespace: str, name: str) -> Object:
    return plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")


def delete_pod(plane: ControlPlane, namespace: str, name: str) -> None:
    plane.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", {"gracePeriodSeconds": 0})


def phase_of(name: str) -> str:
    return next(iter(Job.objects.filter(name=name).values_list("phase", flat=True)), "")


def condition(plane: ControlPlane, namespace: str, name: str) -> str:
    found = get_pod(plane, namespace, name)["status"].get("conditions", [])
    return next((one["message"] for one in found if one.get("reason") == "Unschedulable"), "")


def create_pod_group(plane: ControlPlane, namespace: str, name: str, minimum: int, **spec: Any) -> None:
    """Creates a PodGroup."""
    body = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum, **spec},
    }
    plane.request("POST", _GROUPS.format(namespace), body)


def change_pod_group(plane: ControlPlane, namespace: str, name: str, **spec: Any) -> None:
    path, content_type = f"{_GROUPS.format(namespace)}/{name}", "application/merge-patch+json"
    plane.request("PATCH", path, {"spec": spec}, content_type=content_type)


def pod_group_phase(plane: ControlPlane, namespace: str, name: str) -> str:
    found = plane.request("GET", f"{_GROUPS.format(namespace)}/{name}")
    return str(found.get("status", {}).get("phase", ""))


def member(of: str, number: int, **more: Any) -> Object:
    return pod(f"{of}-{number}", annotations={"scheduling.k8s.io/group-name": of}, **more)


def create_budget(plane: ControlPlane, namespace: str, labels: dict[str, str], least: int) -> str:
    """Creates a budget, waits until the cluster has computed it, and returns its path."""
    place = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    body = {"metadata": {"name": "kept"}, "spec": {"minAvailable": least, "selector": {"matchLabels": labels}}}
    plane.request("POST", place, body)
    path = f"{place}/kept"
    plane.wait_until(lambda: plane.request("GET", path).get("status", {}).get("currentHealthy", 0) >= least, 60.0)
    return path
