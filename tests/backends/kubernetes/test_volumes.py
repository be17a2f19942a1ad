"""Pods on Kubernetes have the volumes of their job, and what was made for a job goes with it."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.backends.conftest import Place
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
def cloud(make_place: Callable[[str], Place]) -> Place:
    return make_place("kubernetes")


def volumes(**sources: dict[str, Any]) -> dict[str, Any]:
    """What an order says of volumes that are mounted at folders of their names."""
    return {
        "volumes": [VolumeSpec(name=name, **source) for name, source in sources.items()],
        "volume_mounts": [VolumeMount(name=name, mount_path=f"/{name}") for name in sources],
    }


def claims(plane: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    there = plane.request("GET", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims")
    found: list[dict[str, Any]] = there["items"]
    return found


def made(**more: Any) -> dict[str, Any]:
    order = PodOrder(PodKey("job", "worker", 0, 0), "n1", ("true",), "s1")
    config = KubernetesConfig(claims=("data-sets",))
    return Manifests("c1", config).pod(dataclasses.replace(order, **more))["spec"]


def test_a_pod_mounts_what_was_ordered_beside_its_working_folder() -> None:
    mounts = [
        VolumeMount(name="shm", mount_path="/dev/shm"),
        VolumeMount(name="data", mount_path="/data", sub_path="imagenet", read_only=True),
        VolumeMount(name="out", mount_path="/work/out"),
    ]
    kinds = {"data": DATA, "out": OUT, "shm": SHM}
    spec = made(volumes=[VolumeSpec(name=name, **source) for name, source in kinds.items()], volume_mounts=mounts)
    sources = {one.pop("name"): one for one in spec["volumes"]}
    places = {one["mountPath"]: one for one in spec["containers"][0]["volumeMounts"]}
    assert list(places) == ["/work", "/dev/shm", "/data", "/work/out"]
    assert (places["/data"]["subPath"], places["/data"]["readOnly"]) == ("imagenet", True)
    assert {path: sources[place["name"]] for path, place in places.items()} == {
        "/work": {"emptyDir": {}},
        "/dev/shm": {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        "/data": {"persistentVolumeClaim": {"claimName": "data-sets"}},
        "/work/out": {"persistentVolumeClaim": {"claimName": "job-job-out"}},
    }


def test_a_volume_is_not_mounted_over_files_of_a_plugin() -> None:
    with pytest.raises(StartRefused, match="a plugin of the job has its files there"):
        made(mounts={"/shm": "hosts"}, **volumes(shm=SHM))


def test_a_claim_of_a_shared_namespace_is_mounted_only_where_the_configuration_names_it() -> None:
    with pytest.raises(StartRefused, match="“hekla-data” is not for jobs of this cluster"):
        made(**volumes(home={"volume_claim_name": "hekla-data"}))


def test_jobs_without_volumes_have_nothing_made_for_them_on_their_account() -> None:
    order = PodOrder(PodKey("job", "worker", 0, 0), "n1", ("true",), "s1", has_peers=False)
    manifests = Manifests("c1", KubernetesConfig())
    assert list(manifests.shared(order)) == []
    assert [one["name"] for one in manifests.pod(order)["spec"]["volumes"]] == ["work"]


@pytest.mark.kubernetes
def test_a_claim_is_made_once_for_all_pods_of_a_job_and_deleted_with_it(cloud, given_namespace, small_cluster) -> None:
    orders = [cloud.long(index, **volumes(out=OUT, shm=SHM)) for index in range(2)]
    for order in orders:
        assert cloud.until(cloud.started(order), PodPhase.RUNNING)
    (claim,) = claims(small_cluster, given_namespace)
    assert claim["metadata"]["name"] == "job-job-out"
    assert claim["metadata"]["labels"] == {"hekla.dev/cluster": "c1", "hekla.dev/job": "job"}
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == orders[0].node
    asked = {"accessModes": ["ReadWriteMany"], "storageClassName": "nfs"}
    assert asked.items() <= claim["spec"].items()
    assert claim["spec"]["resources"] == {"requests": {"storage": "5Gi"}}
    assert cloud.backend.inventory().present == {"job"}
    cloud.backend.remove("job")
    await_none(lambda: claims(small_cluster, given_namespace))


def await_none(found: Callable[[], list[Any]]) -> None:
    """What is in use goes a moment after the last who used it."""
    give_up_at = time.monotonic() + GONE_WITHIN_SECONDS
    while left := found():
        assert time.monotonic() < give_up_at, left
        time.sleep(0.1)


@pytest.mark.kubernetes
def test_a_job_whose_claim_was_deleted_with_it_gets_one_anew_when_it_starts_again(
    cloud, given_namespace, small_cluster
) -> None:
    cloud.started(cloud.long(**volumes(out=OUT)))
    cloud.backend.remove("job")
    await_none(lambda: claims(small_cluster, given_namespace))
    assert cloud.until(cloud.started(cloud.long(1, **volumes(out=OUT))), PodPhase.RUNNING)
    assert claims(small_cluster, given_namespace)


@pytest.mark.kubernetes
def test_claims_of_a_tenant_are_in_its_own_namespace_and_so_are_those_that_it_may_name(
    make_place, small_cluster
) -> None:
    apart = make_place("kubernetes-tenants")
    order = apart.long(**volumes(out=OUT))
    cloud = apart.config["namespace"]
    key = apart.started(dataclasses.replace(order, key=dataclasses.replace(order.key, tenant="physics")))
    assert apart.until(key, PodPhase.RUNNING)
    (claim,) = claims(small_cluster, f"{cloud}-physics")
    assert claim["metadata"]["name"] == "job-job-out"
    named = apart.long(1, **volumes(data={"volume_claim_name": "job-job-out"}))
    key = apart.started(dataclasses.replace(named, key=dataclasses.replace(named.key, tenant="physics")))
    assert apart.until(key, PodPhase.RUNNING)
    apart.backend.remove("job")
    await_none(lambda: claims(small_cluster, f"{cloud}-physics"))


@pytest.mark.kubernetes
def test_a_pod_is_refused_whose_claim_is_not_there_and_starts_where_it_is(
    cloud, given_namespace, small_cluster
) -> None:
    cloud.config |= {"claims": ["data-sets"]}
    cloud.backend = cloud.reopened()
    order = cloud.long(**volumes(data=DATA))
    with pytest.raises(StartRefused, match=f"no claim “data-sets” in the namespace {given_namespace}"):
        cloud.start(order)
    place = f"/api/v1/namespaces/{given_namespace}/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    small_cluster.request("POST", place, {"metadata": {"name": "data-sets"}, "spec": spec})
    assert cloud.until(cloud.started(order), PodPhase.RUNNING)
    cloud.backend.remove("job")
    assert [one["metadata"]["name"] for one in claims(small_cluster, given_namespace)] == ["data-sets"]


@pytest.mark.kubernetes
def test_a_claim_that_the_server_does_not_take_is_told_as_the_reason(cloud) -> None:
    once = [
        VolumeSpec(name="out", volume_claim={"storage": "1Gi", "access_modes": ["ReadWriteOncePod", "ReadOnlyMany"]})
    ]
    order = cloud.long(volumes=once, volume_mounts=[VolumeMount(name="out", mount_path="/out")])
    with pytest.raises(StartRefused, match="what its job has: "):
        cloud.start(order)
