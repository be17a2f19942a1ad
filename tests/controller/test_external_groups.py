"""What PodGroups of external pods say beside their minimum, and claims of external pods to devices."""

from typing import Any

import pytest
from tests.controller.external_pods import (
    condition,
    create_pod,
    create_pod_group,
    external_namespace,
    get_pod,
    member,
    phase_of,
    pod,
    pod_groups,
    shared,
)
from tests.controller.test_device_claims import API as CLAIMS_API
from tests.controller.test_device_claims import add_slice, device, devices_of, put, wanting
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.plugin import grant_in_namespace

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.kubernetes.external_pod_state import parse_pod_group
from hekla.controller.backends import backend_of
from hekla.domain.phases import JobPhase
from hekla.engine.constraints import Requirement
from hekla.engine.model import NetworkTopology, SubGroupPolicy
from hekla.lib import clock
from hekla.scheduling.cache import read_snapshot

__all__ = ["external_namespace", "pod_groups", "shared"]
SLICES: dict[str, Any] = {
    "name": "slices",
    "labelSelector": {"matchLabels": {"app": "train"}},
    "matchLabelKeys": ["slice"],
    "subGroupSize": 2,
    "minSubGroups": 1,
    "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
}
kubernetes = pytest.mark.kubernetes


@kubernetes
def test_minimum_of_each_role_and_sub_groups_reach_the_engine(
    shared, small_cluster, external_namespace, pod_groups
) -> None:
    """Two of three pods fit the minimum of the group; the workers are too few until the last one is there."""
    spec = {
        "minTaskMember": {"Worker": 2},
        "networkTopology": {"mode": "soft", "highestTierName": "rack"},
        "subGroupPolicy": [SLICES | {"minSubGroups": 0}],
    }
    create_pod_group(small_cluster, external_namespace, "train", 2, **spec)
    labels = {"app": "train", "slice": "0", "other": "x"}
    create_pod(small_cluster, external_namespace, member("train", 0, labels={"role": "master"}))
    create_pod(small_cluster, external_namespace, member("train", 1, labels={"role": "Worker", **labels}))
    shared.reconcile_until(lambda: bool(condition(small_cluster, external_namespace, "train-1")))
    assert not Pod.objects.exclude(node="").exists()
    create_pod(small_cluster, external_namespace, member("train", 2, cpu="2", labels={"role": "worker", **labels}))
    shared.reconcile_until(lambda: phase_of("train") == JobPhase.RUNNING)
    shared.reconcile_until(lambda: Pod.objects.exclude(node="").count() == 3)

    (group,) = read_snapshot(shared.cluster, now=clock.now()).state.jobs
    assert group.min_task_member == {"worker": 2}
    assert group.topology == NetworkTopology(is_hard=False, highest_tier_name="rack")
    selector = (Requirement("app", "In", ("train",)),)
    assert group.sub_groups == (SubGroupPolicy("slices", ("slice",), selector, 2, 0, NetworkTopology(True, 1)),)
    assert group.min_resources is None, "a PodGroup without minResources is admitted at once"
    assert {one.name for one in group.pods} == {"train-0", "train-1", "train-2"}
    found = {(one.role, tuple(sorted(one.labels.items()))) for one in group.pods}
    assert found == {("master", ()), ("worker", (("app", "train"), ("slice", "0")))}
    assert Job.objects.get().spec["network_topology"] == {"mode": "soft", "highest_tier_name": "rack"}


@kubernetes
@pytest.mark.thorough
def test_hard_topology_keeps_a_group_in_one_rack(
    shared, small_cluster: ControlPlane, external_namespace, pod_groups
) -> None:
    own = shared.cluster.config["node_labels"]
    size = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    more = small_cluster.add_nodes(2, allocatable={**size, "cpu": "2"}, labels={**own, "rack": "a"})
    try:
        config = {**shared.cluster.config, "topology_labels": ["rack"]}
        clusters.change(shared.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
        spec = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
        create_pod_group(small_cluster, external_namespace, "near", 2, **spec)
        for number in range(2):
            create_pod(small_cluster, external_namespace, member("near", number, cpu="2"))
        shared.reconcile_until(lambda: phase_of("near") == JobPhase.RUNNING)
        assert set(Pod.objects.values_list("node", flat=True)) == set(more)
    finally:
        small_cluster.remove_nodes(more)


@kubernetes
def test_claims_of_external_pods_are_allocated(shared, small_cluster: ControlPlane, external_namespace) -> None:
    """One card for two pods: the second waits for it, with the reason."""
    space = shared.cluster.config["namespace"]
    grant_in_namespace(small_cluster, "rights-devices.yaml", space)
    config = {**shared.cluster.config, "devices": True}
    clusters.change(shared.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    shared.cluster.refresh_from_db()
    (name,) = [node.name for node in backend_of(shared.cluster).nodes()]
    add_slice(small_cluster, name, device("gpu-0"))
    put(small_cluster, "deviceclasses", "DeviceClass", "h100.test", {"selectors": []})
    own = f"namespaces/{external_namespace}"
    put(small_cluster, f"{own}/resourceclaimtemplates", "ResourceClaimTemplate", "one-card", {"spec": wanting()})
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-card"}]
    try:
        create_pod(small_cluster, external_namespace, pod("first", resourceClaims=claims))
        shared.reconcile_until(lambda: phase_of("first") == JobPhase.RUNNING)
        create_pod(small_cluster, external_namespace, pod("second", resourceClaims=claims))
        shared.reconcile_until(lambda: "device" in condition(small_cluster, external_namespace, "second"))
        found = small_cluster.request("GET", f"{CLAIMS_API}/{own}/resourceclaims")["items"]
        (used,) = [one for one in found if devices_of(one)]
        (user,) = used["status"]["reservedFor"]
        assert user["uid"] == get_pod(small_cluster, external_namespace, "first")["metadata"]["uid"]
        assert Node.objects.count() == 1
    finally:
        small_cluster.request("DELETE", f"{CLAIMS_API}/deviceclasses/h100.test")
        small_cluster.request("DELETE", f"{CLAIMS_API}/resourceslices?fieldSelector=spec.nodeName={name}")


def test_policy_of_a_pod_group_is_read_within_limits() -> None:
    def policy(**spec: Any) -> Any:
        return parse_pod_group({"metadata": {"namespace": "n", "name": "g"}, "spec": spec}).policy

    assert policy(minTaskMember={"PS": 1, "none": 0}).roles == {"ps": 1}
    assert policy(networkTopology={}).topology == {"mode": "hard"}
    both = {"mode": "soft", "highestTierAllowed": 10**9, "highestTierName": "x"}
    assert policy(networkTopology=both).topology == {"mode": "soft", "highest_tier_allowed": 1000}
    assert policy(subGroupPolicy=[{**SLICES, "more": 1}] * 200).sub_groups == (SLICES,) * 100
    assert (policy().roles, policy().topology, policy().sub_groups) == ({}, {}, ())
