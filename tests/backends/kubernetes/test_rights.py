"""Every right that the files for operators grant is used: the API server's own audit log names the requests."""

import dataclasses
import json
from typing import Any

import pytest
from tests.backends.conftest import ClusterFixture
from tests.backends.kubernetes.test_health import permissions_in_file
from tests.backends.kubernetes.test_tenants import POLICIES, apply, namespace_of
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.base import PodOrder, StartDelayed
from hekla.backends.kubernetes import names
from hekla.domain.phases import PodPhase
from hekla.domain.runtime_settings import ResourceClaim, RuntimeSettings
from hekla.domain.volumes import VolumeMount, VolumeSpec

Right = tuple[str, str, str]
"""An API group, a resource with its subresource, and a verb."""
BIND = ("rbac.authorization.k8s.io", "clusterroles", "bind")
"""The server asks for it itself, when the role is bound."""
ALLOCATE = ("resource.k8s.io", "resourceclaims/binding", "patch")
"""The server asks for it itself, when the status of a claim is written."""
FIND_CLAIM = ("", "persistentvolumeclaims", "get")
"""Used where volumes do not count for scheduling (`test_volumes.py`): claims are watched here."""
RESOURCES = "/apis/resource.k8s.io/v1"
VOLUMES, STORAGE_CLASSES = "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/storageclasses"


def granted(*files: str) -> set[Right]:
    roles = [role for file in files for role in permissions_in_file(file).values()]
    return {(one.group, one.resource, one.verb) for role in roles for one in role}


def used(plane: ControlPlane) -> set[Right]:
    """The rights that requests of `hekla-tenants` needed."""
    found = set()
    for line in plane.audit_log.read_text().splitlines():
        request = json.loads(line)
        if about := request.get("objectRef"):
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            found.add((about.get("apiGroup", ""), resource, request["verb"]))
    return found


def with_everything(cluster: ClusterFixture) -> PodOrder:
    """A pod with files, secrets, peers, a closed network, volume claims of both kinds, and a claim to a device."""
    claims = (ResourceClaim(name="gpu", resource_claim_name="one"),)
    volumes = [
        VolumeSpec(name="out", volume_claim={"storage": "1Gi", "storage_class": "rights-disks"}),
        VolumeSpec(name="data", volume_claim_name="data-sets"),
    ]
    mounts = [VolumeMount(name=name, mount_path=f"/{name}") for name in ("out", "data")]
    return dataclasses.replace(
        cluster.long(files={"a": "b"}, secrets={"c": "d"}, volumes=volumes, volume_mounts=mounts),
        has_peers=True, is_closed=True, settings=RuntimeSettings(resource_claims=claims),
    )  # fmt: skip


def add_storage(plane: ControlPlane, namespace: str) -> None:
    """A class that makes volumes, one with a volume that exists, and a claim to it."""
    for name, provisioner in (("rights-disks", "rights.test"), ("rights-shared", "kubernetes.io/no-provisioner")):
        body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        plane.request("POST", STORAGE_CLASSES, body)
    wanted = {"accessModes": ["ReadWriteMany"], "storageClassName": "rights-shared"}
    add_volume(plane, "rights-shared", {**wanted, "hostPath": {"path": "/mnt"}})
    claim = {**wanted, "resources": {"requests": {"storage": "1Gi"}}}
    body = {"metadata": {"name": "data-sets"}, "spec": claim}
    plane.request("POST", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", body)


def add_volume(plane: ControlPlane, name: str, spec: dict[str, Any]) -> None:
    plane.request("POST", VOLUMES, {"metadata": {"name": name}, "spec": {"capacity": {"storage": "1Gi"}, **spec}})


def provision(plane: ControlPlane, namespace: str, name: str) -> None:
    """Make the volume of a claim, as the provisioner of its class would."""
    claim = plane.request("GET", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
    own = {field: claim["metadata"][field] for field in ("namespace", "name", "uid")}
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "rights-disks", "hostPath": {"path": "/mnt"}}
    add_volume(plane, "rights-disks", {**wanted, "claimRef": {"kind": "PersistentVolumeClaim", **own}})


def is_startable(cluster: ClusterFixture, order: PodOrder) -> bool:
    """Start the pod, unless its claims still wait."""
    try:
        cluster.start(order)
    except StartDelayed:
        return False
    return True


def add_device(plane: ControlPlane, namespace: str) -> None:
    """A device that all nodes can use, and a claim to it."""
    pool = {"name": "test-rights", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "rights.test", "allNodes": True, "pool": pool, "devices": [{"name": "d-0"}]}
    wanted = {"requests": [{"name": "r", "exactly": {"deviceClassName": "rights.test"}}]}
    for place, name, spec in (
        ("resourceslices", "test-rights", devices),
        ("deviceclasses", "rights.test", {"selectors": [{"cel": {"expression": "device.driver == 'rights.test'"}}]}),
        (f"namespaces/{namespace}/resourceclaims", "one", {"devices": wanted}),
    ):
        plane.request("POST", f"{RESOURCES}/{place}", {"metadata": {"name": name}, "spec": spec})


@pytest.mark.kubernetes
def test_every_granted_right_is_used(make_cluster: Any, small_cluster: ControlPlane, topology_kinds: None) -> None:
    config = {"devices": True, "storage": True, "runtime_classes": ["any"]}
    cluster = make_cluster("kubernetes-tenants", config)
    space, backend = namespace_of(cluster, "lab"), cluster.backend
    apply(cluster, "lab", cpu="4")
    apply(cluster, "lab", cpu="3")
    path = f"{POLICIES.format(space)}/hekla"
    small_cluster.request("PATCH", path, {"spec": {"ingress": []}}, content_type="application/merge-patch+json")
    apply(cluster, "lab")
    rights = granted("rights.yaml", "rights-tenants.yaml", "rights-devices.yaml", "rights-storage.yaml")
    add_storage(small_cluster, space)
    add_device(small_cluster, space)
    order, other = with_everything(cluster), cluster.long(1)
    with pytest.raises(StartDelayed, match="has no volume yet"):
        cluster.start(order)
    provision(small_cluster, space, f"job-{order.key.job}-out")
    small_cluster.wait_until(lambda: is_startable(cluster, order))
    for one in (order, other):
        cluster.started(one)
        cluster.until(one.key, PodPhase.RUNNING)
    cluster.start(order, at=cluster.reopen())
    backend.logs(order.key, offset=0, limit=100)
    backend.budgets.protected([order.key], heartbeat=lambda: None)
    backend.budgets.list_budgets({"lab"})
    backend.runtime_classes.list_runtime_classes()
    cluster.stop(other.key, reason="Enough")
    cluster.ended(other.key)
    backend.forget([other.key])
    backend.inventory()
    backend.nodes()
    backend.node_meter.measure_nodes()
    watched = {right for right in rights if right[2] == "watch"} | {("metrics.k8s.io", "nodes", "list")}
    small_cluster.wait_until(lambda: watched <= used(small_cluster))
    for kind in ("configmaps", "secrets"):  # others go with their pods, unless the cluster is slow
        left = {"metadata": {"name": "left", "labels": names.job_labels("c1", order.key.job)}}
        small_cluster.request("POST", f"/api/v1/namespaces/{space}/{kind}", left)
    backend.remove(order.key.job, tenant="lab")
    small_cluster.request("DELETE", f"{RESOURCES}/resourceslices/test-rights")
    for name in ("rights-disks", "rights-shared"):
        small_cluster.request("DELETE", f"{VOLUMES}/{name}")
        small_cluster.request("DELETE", f"{STORAGE_CLASSES}/{name}")
    assert rights - used(small_cluster) == {BIND, ALLOCATE, FIND_CLAIM}
