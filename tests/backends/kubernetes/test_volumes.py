"""Volumes on Kubernetes: pods mount the volumes of their job, and claims of a job are deleted with it."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.backends.conftest import ClusterFixture
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.base import PodKey, PodOrder, StartRefused
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.manifests import Manifests
from hekla.domain.phases import PodPhase
from hekla.domain.volumes import VolumeMount, VolumeSpec

GONE_WITHIN_SECONDS = 60
OUT = {"volume_claim": {"storage": "5Gi", "access_modes": ["ReadWriteMany"], "storage_class": "nfs"}}
DATA = {"volume_claim_name": "data-sets"}
SHM = {"empty_dir": {"medium": "Memory", "size_limit": "1Gi"}}


@pytest.fixture
def cloud(make_cluster: Callable[[str], ClusterFixture]) -> ClusterFixture:
    return make_cluster("kubernetes")


def volumes(**sources: dict[str, Any]) -> dict[str, Any]:
    """Fields of an order: volumes mounted at folders of their names."""
    return {
        "volumes": [VolumeSpec(name=name, **source) for name, source in sources.items()],
        "volume_mounts": [VolumeMount(name=name, mount_path=f"/{name}") for name in sources],
    }


def claims(plane: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    answer = plane.request("GET", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims")
    found: list[dict[str, Any]] = answer["items"]
    return found


def pod_spec(**more: Any) -> dict[str, Any]:
    order = PodOrder(PodKey("job", "worker", 0, 0), "n1", ("true",), "s1")
    config = KubernetesConfig(claims=("data-sets",))
    return Manifests("c1", config).pod(dataclasses.replace(order, **more))["spec"]


def test_pod_has_the_volumes_of_its_order_beside_its_working_directory() -> None:
    mounts = [
        VolumeMount(name="shm", mount_path="/dev/shm"),
        VolumeMount(name="data", mount_path="/data", sub_path="imagenet", read_only=True),
        VolumeMount(name="out", mount_path="/work/out"),
    ]
    kinds = {"data": DATA, "out": OUT, "shm": SHM}
    spec = pod_spec(volumes=[VolumeSpec(name=name, **source) for name, source in kinds.items()], volume_mounts=mounts)
    sources = {one.pop("name"): one for one in spec["volumes"]}
    mounted = {one["mountPath"]: one for one in spec["containers"][0]["volumeMounts"]}
    assert list(mounted) == ["/work", "/dev/shm", "/data", "/work/out"]
    assert (mounted["/data"]["subPath"], mounted["/data"]["readOnly"]) == ("imagenet", True)
    assert {path: sources[mount["name"]] for path, mount in mounted.items()} == {
        "/work": {"emptyDir": {}},
        "/dev/shm": {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        "/data": {"persistentVolumeClaim": {"claimName": "data-sets"}},
        "/work/out": {"persistentVolumeClaim": {"claimName": "job-job-out"}},
    }


def test_volume_over_files_of_a_plugin_is_refused() -> None:
    with pytest.raises(StartRefused, match="a plugin of the job has its files there"):
        pod_spec(mounts={"/shm": "hosts"}, **volumes(shm=SHM))


def test_claim_of_a_shared_namespace_must_be_in_the_configuration() -> None:
    with pytest.raises(StartRefused, match="“hekla-data” is not for jobs of this cluster"):
        pod_spec(**volumes(home={"volume_claim_name": "hekla-data"}))


def test_job_without_volumes_has_no_objects_for_them() -> None:
    order = PodOrder(PodKey("job", "worker", 0, 0), "n1", ("true",), "s1", has_peers=False)
    manifests = Manifests("c1", KubernetesConfig())
    assert list(manifests.shared(order)) == []
    assert [one["name"] for one in manifests.pod(order)["spec"]["volumes"]] == ["work"]


@pytest.mark.kubernetes
def test_claim_is_created_once_per_job_and_deleted_with_it(cloud, granted_namespace, small_cluster) -> None:
    orders = [cloud.long(index, **volumes(out=OUT, shm=SHM)) for index in range(2)]
    for order in orders:
        assert cloud.until(cloud.started(order), PodPhase.RUNNING)
    (claim,) = claims(small_cluster, granted_namespace)
    assert claim["metadata"]["name"] == "job-job-out"
    assert claim["metadata"]["labels"] == {"hekla.dev/cluster": "c1", "hekla.dev/job": "job"}
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == orders[0].node
    expected = {"accessModes": ["ReadWriteMany"], "storageClassName": "nfs"}
    assert expected.items() <= claim["spec"].items()
    assert claim["spec"]["resources"] == {"requests": {"storage": "5Gi"}}
    assert cloud.backend.inventory().present == {"job"}
    cloud.backend.remove("job")
    wait_until_empty(lambda: claims(small_cluster, granted_namespace))


def wait_until_empty(found: Callable[[], list[Any]]) -> None:
    """A claim in use is deleted a moment after its last pod."""
    give_up_at = time.monotonic() + GONE_WITHIN_SECONDS
    while left := found():
        assert time.monotonic() < give_up_at, left
        time.sleep(0.1)


@pytest.mark.kubernetes
def test_job_gets_a_new_claim_when_it_restarts_after_removal(cloud, granted_namespace, small_cluster) -> None:
    cloud.started(cloud.long(**volumes(out=OUT)))
    cloud.backend.remove("job")
    wait_until_empty(lambda: claims(small_cluster, granted_namespace))
    assert cloud.until(cloud.started(cloud.long(1, **volumes(out=OUT))), PodPhase.RUNNING)
    assert claims(small_cluster, granted_namespace)


@pytest.mark.kubernetes
def test_claims_of_a_tenant_are_in_its_namespace(make_cluster, small_cluster) -> None:
    namespaced = make_cluster("kubernetes-tenants")
    order = namespaced.long(**volumes(out=OUT))
    cloud = namespaced.config["namespace"]
    key = namespaced.started(dataclasses.replace(order, key=dataclasses.replace(order.key, tenant="physics")))
    assert namespaced.until(key, PodPhase.RUNNING)
    (claim,) = claims(small_cluster, f"{cloud}-physics")
    assert claim["metadata"]["name"] == "job-job-out"
    named = namespaced.long(1, **volumes(data={"volume_claim_name": "job-job-out"}))
    key = namespaced.started(dataclasses.replace(named, key=dataclasses.replace(named.key, tenant="physics")))
    assert namespaced.until(key, PodPhase.RUNNING)
    namespaced.backend.remove("job")
    wait_until_empty(lambda: claims(small_cluster, f"{cloud}-physics"))


@pytest.mark.kubernetes
def test_pod_with_a_missing_claim_is_refused_until_the_claim_exists(cloud, granted_namespace, small_cluster) -> None:
    cloud.config |= {"claims": ["data-sets"]}
    cloud.backend = cloud.reopen()
    order = cloud.long(**volumes(data=DATA))
    with pytest.raises(StartRefused, match=f"no claim “data-sets” in the namespace {granted_namespace}"):
        cloud.start(order)
    path = f"/api/v1/namespaces/{granted_namespace}/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    small_cluster.request("POST", path, {"metadata": {"name": "data-sets"}, "spec": spec})
    assert cloud.until(cloud.started(order), PodPhase.RUNNING)
    cloud.backend.remove("job")
    assert [one["metadata"]["name"] for one in claims(small_cluster, granted_namespace)] == ["data-sets"]


@pytest.mark.kubernetes
def test_claim_refused_by_the_server_refuses_the_pod_with_the_reason(cloud) -> None:
    once = [
        VolumeSpec(name="out", volume_claim={"storage": "1Gi", "access_modes": ["ReadWriteOncePod", "ReadOnlyMany"]})
    ]
    order = cloud.long(volumes=once, volume_mounts=[VolumeMount(name="out", mount_path="/out")])
    with pytest.raises(StartRefused, match="what its job has: "):
        cloud.start(order)
