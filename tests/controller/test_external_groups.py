"""What PodGroups of external pods say beside their minimum, and claims of external pods to devices."""

from typing import Any

import pytest
from tests.controller.external_pods import (
    change_pod_group,
    condition,
    create_pod,
    create_pod_group,
    devices,
    external_namespace,
    get_pod,
    member,
    phase_of,
    pod,
    pod_groups,
    shared,
)
from tests.controller.test_device_claims import API as CLAIMS_API
from tests.controller.test_device_claims import devices_of
from tests.controller.test_network_topology import POLICY as WITH_TOPOLOGY
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import history
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.backends.kubernetes.external_pod_state import parse_pod_group
from hekla.controller import audit
from hekla.domain.phases import GangPhase, JobPhase
from hekla.engine.constraints import Requirement
from hekla.engine.model import NetworkTopology, SubGroupPolicy
from hekla.lib import clock
from hekla.scheduling.cache import read_snapshot

__all__ = ["devices", "external_namespace", "pod_groups", "shared"]
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
def test_changed_group_counts_at_once(shared, small_cluster: ControlPlane, external_namespace, pod_groups) -> None:
    """A group that is too large is made smaller and moved to another queue while it waits, then changed as it runs."""
    queues.create(cluster=shared.cluster, name="night", actor=PLATFORM, now=clock.now())
    create_pod_group(small_cluster, external_namespace, "grow", 2, minResources={"cpu": "100"})
    create_pod(small_cluster, external_namespace, member("grow", 0))
    shared.reconcile_until(lambda: bool(condition(small_cluster, external_namespace, "grow-0")))
    job = Job.objects.get()
    assert (job.queue.name, job.gang_phase, job.replicas) == ("default", GangPhase.PENDING, 2)

    smaller: dict[str, Any] = {"minMember": 1, "minResources": {"cpu": "1"}}
    change_pod_group(small_cluster, external_namespace, "grow", queue="night", **smaller)
    shared.reconcile_until(lambda: phase_of("grow") == JobPhase.RUNNING)
    job.refresh_from_db()
    assert (job.queue.name, job.replicas, job.spec["queue"]) == ("night", 1, "night")

    policy = {"minTaskMember": {"pod": 1}, "networkTopology": {"mode": "soft"}, "queue": "default"}
    change_pod_group(small_cluster, external_namespace, "grow", **policy)
    shared.reconcile_until(lambda: Job.objects.get().spec.get("network_topology") == {"mode": "soft"})
    (group,) = read_snapshot(shared.cluster, now=clock.now()).state.jobs
    assert (group.min_task_member, group.topology, group.queue) == ({"pod": 1}, NetworkTopology(is_hard=False), "night")
    changes = [
        line.sentence for line in history.lines(list(LoggedEvent.objects.filter(kind="JobChanged").order_by("pk")))
    ]
    assert changes == [
        "Changed: queue from default to night.",
        "Changed: replicas of pod from 2 to 1; minimum pods of the job from 2 to 1; resources for admission.",
        "Changed: minimum of each role; network topology.",
    ]
    assert audit.findings() == []


@kubernetes
def test_group_has_the_priority_of_its_class(
    shared, small_cluster: ControlPlane, external_namespace, pod_groups
) -> None:
    """Its pods keep their own priority, as in Volcano."""
    place, name = "/apis/scheduling.k8s.io/v1/priorityclasses", f"urgent-{external_namespace}"
    small_cluster.request("POST", place, {"metadata": {"name": name}, "value": 500})
    try:
        create_pod_group(small_cluster, external_namespace, "first", 1, priorityClassName=name)
        create_pod(small_cluster, external_namespace, member("first", 0))
        shared.reconcile_until(lambda: phase_of("first") == JobPhase.RUNNING)
        (group,) = read_snapshot(shared.cluster, now=clock.now()).state.jobs
        assert (Job.objects.get().priority, group.priority, group.pods[0].priority) == (500, 500, 0)
        change_pod_group(small_cluster, external_namespace, "first", priorityClassName=None)
        shared.reconcile_until(lambda: Job.objects.get().priority == 0)
        assert audit.findings() == []
    finally:
        small_cluster.request("DELETE", f"{place}/{name}")


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
        facts = {"note": "", "by": shared.alice, "actor": PLATFORM, "now": clock.now()}
        clusters.set_policy(shared.cluster, text=WITH_TOPOLOGY, **facts)
        spec = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
        create_pod_group(small_cluster, external_namespace, "near", 2, **spec)
        for number in range(2):
            create_pod(small_cluster, external_namespace, member("near", number, cpu="2"))
        shared.reconcile_until(lambda: phase_of("near") == JobPhase.RUNNING)
        assert set(Pod.objects.values_list("node", flat=True)) == set(more)
    finally:
        small_cluster.remove_nodes(more)


@kubernetes
def test_claims_of_external_pods_are_allocated(
    shared, small_cluster: ControlPlane, external_namespace, devices
) -> None:
    """One card for two pods: the second waits for it, with the reason."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-card"}]
    create_pod(small_cluster, external_namespace, pod("first", resourceClaims=claims))
    shared.reconcile_until(lambda: phase_of("first") == JobPhase.RUNNING)
    create_pod(small_cluster, external_namespace, pod("second", resourceClaims=claims))
    shared.reconcile_until(lambda: "device" in condition(small_cluster, external_namespace, "second"))
    own = f"namespaces/{external_namespace}"
    found = small_cluster.request("GET", f"{CLAIMS_API}/{own}/resourceclaims")["items"]
    (used,) = [one for one in found if devices_of(one)]
    (user,) = used["status"]["reservedFor"]
    assert user["uid"] == get_pod(small_cluster, external_namespace, "first")["metadata"]["uid"]
    assert Node.objects.count() == 1


def test_policy_of_a_pod_group_is_read_within_limits() -> None:
    def policy(**spec: Any) -> Any:
        return parse_pod_group({"metadata": {"namespace": "n", "name": "g"}, "spec": spec}).policy

    assert policy(minTaskMember={"PS": 1, "none": 0}).roles == {"ps": 1}
    assert policy(networkTopology={}).topology == {"mode": "hard"}
    both = {"mode": "soft", "highestTierAllowed": 10**9, "highestTierName": "x"}
    assert policy(networkTopology=both).topology == {"mode": "soft", "highest_tier_allowed": 1000}
    assert policy(subGroupPolicy=[{**SLICES, "more": 1}] * 200).sub_groups == (SLICES,) * 100
    assert (policy().roles, policy().topology, policy().sub_groups) == ({}, {}, ())
