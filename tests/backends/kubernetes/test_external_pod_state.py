"""Parsing of external pods."""

from typing import Any

import pytest

from hekla.backends.kubernetes.external_pod_state import parse_external_pod, parse_pod_group
from hekla.domain.external_pods import GroupKind
from hekla.domain.phases import PodPhase

MADE = "2026-01-01T00:00:00Z"
MAKER = {"kind": "Job", "name": "nightly", "uid": "9", "controller": True}


def pod(status: dict[str, Any] | None = None, *, meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "a", "image": "x", "resources": {"requests": {"cpu": "500m"}}}]
    whole = {"name": "p", "namespace": "team-a", "uid": "1", "creationTimestamp": MADE, **(meta or {})}
    return {"metadata": whole, "spec": {"containers": containers, **spec}, "status": status or {}}


GROUPS: list[tuple[dict[str, Any], GroupKind, str]] = [
    ({"annotations": {"scheduling.k8s.io/group-name": "g"}, "ownerReferences": [MAKER]}, GroupKind.POD_GROUP, "g"),
    ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, GroupKind.POD_GROUP, "g"),
    ({"labels": {"training.kubeflow.org/job-name": "t"}, "ownerReferences": [MAKER]}, GroupKind.JOB_NAME, "t"),
    ({"ownerReferences": [{**MAKER, "controller": False}, MAKER]}, GroupKind.OWNER, "nightly"),
    ({"ownerReferences": [{**MAKER, "controller": False}]}, GroupKind.POD, "p"),
    ({}, GroupKind.POD, "p"),
]


@pytest.mark.parametrize(("meta", "kind", "name"), GROUPS)
def test_pods_are_grouped_by_annotation_or_label_else_by_owner(meta, kind, name) -> None:
    group = parse_external_pod(pod(meta=meta)).group
    assert (group.namespace, group.kind, group.name) == ("team-a", kind, name)


def ended(code: int) -> dict[str, Any]:
    end = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": MADE}}
    return {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"name": "a", "state": end}]}


STATES: list[tuple[dict[str, Any], str, PodPhase, int | None]] = [
    ({}, "", PodPhase.PENDING, None),
    ({"phase": "Pending"}, "n1", PodPhase.PREPARING, None),
    ({"phase": "Running"}, "n1", PodPhase.RUNNING, None),
    (ended(0), "n1", PodPhase.SUCCEEDED, 0),
    (ended(3), "n1", PodPhase.FAILED, 3),
    ({"phase": "Failed", "reason": "Evicted"}, "n1", PodPhase.FAILED, None),
]


@pytest.mark.parametrize(("status", "node", "phase", "code"), STATES)
def test_phase_is_that_of_the_cluster(status, node, phase, code) -> None:
    found = parse_external_pod(pod(status, nodeName=node))
    assert (found.phase, found.exit_code) == (phase, code)


OBSTACLES: list[dict[str, Any]] = [
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
    {"schedulingGates": [{"name": "quota"}]},
    {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]},
    {"resourceClaims": [{"name": "gpu"}]},
]


@pytest.mark.parametrize("spec", OBSTACLES)
def test_unsupported_constraint_is_an_obstacle(spec) -> None:
    assert parse_external_pod(pod(**spec)).obstacle


def test_preferences_are_no_obstacle() -> None:
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}
    spread = [{"whenUnsatisfiable": "ScheduleAnyway"}]
    assert not parse_external_pod(pod(affinity=affinity, topologySpreadConstraints=spread)).obstacle


def test_requests_priority_and_selector_are_read() -> None:
    found = parse_external_pod(pod(priority=7, preemptionPolicy="Never", nodeSelector={"zone": "a"}))
    assert (found.request, found.priority, found.never_preempts) == ({"cpu": "500m"}, 7, True)
    assert found.node_selector == {"zone": "a"}


ADDED = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
ZONES = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}


def test_tolerations_and_node_affinity_are_read() -> None:
    toleration = {"key": "gpu", "operator": "Equal", "value": "yes"}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ZONES}, "podAffinity": None}
    found = parse_external_pod(pod(tolerations=[ADDED, toleration], affinity=affinity))
    required = {"node_selector_terms": [{"match_expressions": ZONES["nodeSelectorTerms"][0]["matchExpressions"]}]}
    assert found.obstacle == ""
    assert found.placement == {
        "tolerations": [{"key": "gpu", "value": "yes"}],
        "affinity": {"node_affinity": {"required_during_scheduling_ignored_during_execution": required}},
    }
    assert parse_external_pod(pod(tolerations=[ADDED])).placement == {}


def test_annotations_for_the_scheduler_are_read() -> None:
    annotations = {
        "volcano.sh/task-priority": "7",
        "volcano.sh/revocable-zone": "x" * 5000,
        "volcano.sh/gpu-index": "0",
        "other": "1",
    }
    found = parse_external_pod(pod(meta={"labels": {"volcano.sh/preemptable": "false"}, "annotations": annotations}))
    assert found.placement["annotations"] == {"volcano.sh/preemptable": "false", "volcano.sh/task-priority": "7"}
    annotations = {"volcano.sh/task-priority": "high", "volcano.sh/preemptable": "true"}
    found = parse_external_pod(pod(meta={"labels": {"volcano.sh/preemptable": "false"}, "annotations": annotations}))
    assert found.placement["annotations"] == {"volcano.sh/preemptable": "true"}


def test_ports_of_the_node_are_read() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081, "protocol": "UDP", "name": "x"}]
    found = parse_external_pod(pod(containers=[{"name": "a"}, {"name": "b", "ports": ports}]))
    assert found.obstacle == ""
    assert found.placement == {"host_ports": [{"host_port": 8081, "container_port": 81, "protocol": "UDP"}]}


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "a", "ports": [{"containerPort": n, "hostPort": n} for n in range(1, 18)]}]},
        {"tolerations": [{"key": "cores", "operator": "Gt", "value": "8"}]},
        {"tolerations": [{"key": "cores", "newField": "x"}]},
        {"tolerations": [{"key": f"k{number}"} for number in range(33)]},
    ],
)
def test_constraint_that_tasks_cannot_have_is_an_obstacle(spec) -> None:
    assert parse_external_pod(pod(**spec)).obstacle


def test_pod_group_without_a_minimum_has_a_minimum_of_one() -> None:
    found = parse_pod_group({"metadata": {"name": "g", "namespace": "team-a"}, "spec": {}})
    assert (found.minimum, found.phase, found.is_new) == (1, "", True)


def test_pod_group_has_its_least_resources_without_those_of_quotas() -> None:
    least = {
        "cpu": "3",
        "memory": "3Gi",
        "pods": "2",
        "count/pods": "2",
        "requests.cpu": "3",
        "limits.cpu": "3",
        "x": "?",
    }
    found = parse_pod_group({"metadata": {"name": "g", "namespace": "team-a"}, "spec": {"minResources": least}})
    assert found.request == {"cpu": "3", "memory": "3Gi"}


@pytest.mark.parametrize(
    ("labels", "role"),
    [
        ({"spark-role": "driver", "spark-app-selector": "spark-1"}, "driver"),
        ({"spark-role": "executor", "spark-exec-id": "1"}, "executor"),
        ({"app": "word-count", "component": "taskmanager", "type": "flink-native-kubernetes"}, "taskmanager"),
    ],
)
def test_roles_of_spark_and_flink_are_read(labels, role) -> None:
    assert parse_external_pod(pod(meta={"labels": labels})).role == role
