"""Parsing of nodes: resources, readiness, taints, annotations, images."""

from typing import Any

import pytest

from hekla.backends.kubernetes import nodes
from hekla.domain.resources import Resources


def node(ready: str | None = "True", **spec: Any) -> dict[str, Any]:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready, "message": "kubelet stopped posting"}]
    allocatable = {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "4", "hugepages-1Gi": "weird"}
    status = {"allocatable": allocatable, "conditions": conditions}
    return {"metadata": {"name": "n1", "labels": {"rack": "r1"}}, "spec": spec, "status": status}


def test_allocatable_excludes_requests_of_other_pods() -> None:
    asks = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"}}}
    first = {"resources": {"requests": {"cpu": "2"}}}
    pods = [
        {
            "spec": {
                "nodeName": "n1",
                "containers": [asks, asks],
                "initContainers": [first],
                "overhead": {"cpu": "100m"},
            }
        },
        {"spec": {"containers": [asks]}},
        {"spec": {"nodeName": "n2", "containers": [asks]}},
    ]
    found = nodes.node_info(node(), nodes.requests_of_other_pods(pods)["n1"])
    assert found.ready
    assert found.labels == {"rack": "r1"}
    expected = {"cpu": "5900m", "memory": "14Gi", "pods": "109", "nvidia.com/gpu": "2"}
    assert found.allocatable == Resources.parse(expected)


def test_overcommitted_node_has_nothing_allocatable() -> None:
    found = nodes.node_info(node(), Resources.parse({"cpu": "9"}))
    assert found.allocatable.amount("cpu") == 0


NOT_READY = [
    (node("False"), "kubelet stopped posting"),
    (node("Unknown"), "kubelet stopped posting"),
    (node(None), "It has not said that it is ready."),
    (node(unschedulable=True), "It is cordoned."),
]


@pytest.mark.parametrize(("manifest", "message"), NOT_READY)
def test_unready_node_has_a_message(manifest, message) -> None:
    found = nodes.node_info(manifest, Resources())
    assert (found.ready, found.message) == (False, message)


GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
SLOW = {"key": "slow", "effect": "PreferNoSchedule"}
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-03-01T10:00:00Z"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
FULL_DISK = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}

TAINTED = [
    (node(), True, []),
    (node(taints=None), True, []),
    (node(taints=[GPU, SLOW]), True, ["gpu=yes:NoSchedule", "slow:PreferNoSchedule"]),
    (node(taints=[FULL_DISK]), True, ["node.kubernetes.io/disk-pressure:NoSchedule"]),
    (node(taints=[CORDONED]), True, ["node.kubernetes.io/unschedulable:NoSchedule"]),
    (node(taints=[CORDONED, GPU], unschedulable=True), False, ["gpu=yes:NoSchedule"]),
    (node("Unknown", taints=[UNREACHABLE, FULL_DISK]), False, ["node.kubernetes.io/disk-pressure:NoSchedule"]),
]


@pytest.mark.parametrize(("manifest", "ready", "taints"), TAINTED)
def test_taints_of_a_node(manifest: dict[str, Any], ready: bool, taints: list[str]) -> None:
    """Those that Kubernetes sets on a node that is not ready would only repeat that."""
    found = nodes.node_info(manifest, Resources())
    assert (found.ready, [str(taint) for taint in found.taints]) == (ready, taints)


IMAGES = [
    (None, {}),
    ([], {}),
    ([{"names": ["a@sha256:1", "a:2"], "sizeBytes": 7}], {"a@sha256:1": 7, "a:2": 7}),
    ([{"names": ["big"], "sizeBytes": 7}, {"sizeBytes": 6}, {"names": ["b"]}], {"big": 7, "b": 0}),
]


@pytest.mark.parametrize(("reported", "expected"), IMAGES)
def test_images_have_all_their_names(reported: object, expected: object) -> None:
    manifest = node()
    manifest["status"]["images"] = reported
    assert nodes.node_info(manifest, Resources()).images == expected


@pytest.mark.parametrize("annotations", [None, {"hekla.io/cached-datasets": "imagenet"}])
def test_annotations_of_a_node(annotations: dict[str, str] | None) -> None:
    manifest = node()
    manifest["metadata"]["annotations"] = annotations
    assert nodes.node_info(manifest, Resources()).annotations == (annotations or {})
