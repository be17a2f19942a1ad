"""The Kubernetes of the other tests behaves like a real one, where they rely on it."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.kubernetes.control_plane import LOG_LINES, ControlPlane, RequestRefused

FINALIZER = "hekla.dev/test"


@pytest.fixture(scope="module")
def node(control_plane: ControlPlane) -> Iterator[str]:
    names = control_plane.add_nodes(1)
    yield names[0]
    control_plane.remove_nodes(names)


class Pods:
    """The pods of one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane, self.path = plane, f"/api/v1/namespaces/{namespace}/pods"

    def make(self, name: str, **metadata: Any) -> None:
        spec = {"containers": [{"name": "main", "image": "test"}]}
        self._plane.request("POST", self.path, {"metadata": {"name": name, **metadata}, "spec": spec})

    def bind(self, name: str, node: str) -> None:
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        self._plane.request("POST", f"{self.path}/{name}/binding", body)

    def get(self, name: str) -> dict[str, Any]:
        return self._plane.request("GET", f"{self.path}/{name}")

    def delete(self, name: str) -> None:
        self._plane.request("DELETE", f"{self.path}/{name}")

    def phase(self, name: str) -> str:
        return str(self.get(name)["status"]["phase"])

    def is_gone(self, name: str) -> bool:
        return name not in {pod["metadata"]["name"] for pod in self._plane.request("GET", self.path)["items"]}

    def wait_for(self, name: str, phase: str, *, seconds: float = 30) -> dict[str, Any]:
        self._plane.wait_until(lambda: self.phase(name) == phase, seconds)
        return self.get(name)


@pytest.fixture
def pods(control_plane: ControlPlane, namespace: str) -> Pods:
    return Pods(control_plane, namespace)


def state_of(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["status"]["containerStatuses"]
    state: dict[str, Any] = container["state"]
    return state


def test_nodes_are_ready_and_have_their_resources_and_labels(control_plane: ControlPlane) -> None:
    names = control_plane.add_nodes(3, allocatable={"cpu": "4", "nvidia.com/gpu": "2"}, labels={"rack": "a"})
    assert len(set(names)) == 3
    for name in names:
        found = control_plane.request("GET", f"/api/v1/nodes/{name}")
        assert found["status"]["allocatable"] == {"cpu": "4", "nvidia.com/gpu": "2"}
        assert found["metadata"]["labels"]["rack"] == "a"
        assert "taints" not in found["spec"]
    control_plane.remove_nodes(names)


def test_bound_pod_runs_without_end(pods: Pods, node: str) -> None:
    pods.make("endless")
    assert pods.phase("endless") == "Pending"
    pods.bind("endless", node)
    pod = pods.wait_for("endless", "Running")
    assert state_of(pod)["running"]["startedAt"]
    assert pod["status"]["podIP"].startswith("10.244.")


@pytest.mark.parametrize(("code", "phase", "reason"), [(0, "Succeeded", "Completed"), (3, "Failed", "Error")])
def test_pod_ends_with_the_exit_code_of_its_annotation(
    pods: Pods, node: str, code: int, phase: str, reason: str
) -> None:
    pods.make("ends", annotations={"hekla.dev/test-seconds": "0.5s", "hekla.dev/test-exit": str(code)})
    pods.bind("ends", node)
    ended = state_of(pods.wait_for("ends", phase))["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, reason)
    assert ended["startedAt"] <= ended["finishedAt"]


def test_change_of_a_running_pod_does_not_extend_its_run(control_plane: ControlPlane, pods: Pods, node: str) -> None:
    pods.make("changed", annotations={"hekla.dev/test-seconds": "2s"})
    pods.bind("changed", node)
    pods.wait_for("changed", "Running")
    control_plane.wait_until(lambda: "hekla.dev/test-ends-at" in pods.get("changed")["metadata"]["annotations"])
    planned = pods.get("changed")["metadata"]["annotations"]["hekla.dev/test-ends-at"]
    body = {"metadata": {"labels": {"colour": "red"}}}
    control_plane.request("PATCH", f"{pods.path}/changed", body, content_type="application/merge-patch+json")
    ended = pods.wait_for("changed", "Succeeded")
    assert ended["metadata"]["annotations"]["hekla.dev/test-ends-at"] == planned


def test_deleted_pod_is_gone(control_plane: ControlPlane, pods: Pods, node: str) -> None:
    for name in ("running", "unbound"):
        pods.make(name)
    pods.bind("running", node)
    pods.wait_for("running", "Running")
    for name in ("running", "unbound"):
        pods.delete(name)
    control_plane.wait_until(lambda: pods.is_gone("running") and pods.is_gone("unbound"))


def test_pod_with_a_finalizer_keeps_its_final_phase_until_it_is_removed(
    control_plane: ControlPlane, pods: Pods, node: str
) -> None:
    pods.make("kept", finalizers=[FINALIZER])
    pods.bind("kept", node)
    pods.wait_for("kept", "Running")
    pods.delete("kept")
    control_plane.wait_until(lambda: pods.get("kept")["metadata"].get("deletionGracePeriodSeconds") == 0)
    deleted = pods.get("kept")
    assert deleted["status"]["phase"] == "Failed"
    assert state_of(deleted)["terminated"]["exitCode"] == 143
    assert deleted["metadata"]["finalizers"] == [FINALIZER]
    body = [{"op": "remove", "path": "/metadata/finalizers"}]
    control_plane.request("PATCH", f"{pods.path}/kept", body, content_type="application/json-patch+json")
    control_plane.wait_until(lambda: pods.is_gone("kept"))


def test_pod_is_bound_only_once(pods: Pods, node: str) -> None:
    pods.make("twice")
    pods.bind("twice", node)
    with pytest.raises(RequestRefused) as refused:
        pods.bind("twice", node)
    assert refused.value.status == 409


def test_container_log_is_readable(control_plane: ControlPlane, pods: Pods, namespace: str, node: str) -> None:
    pods.make("speaks")
    pods.bind("speaks", node)
    pods.wait_for("speaks", "Running")
    assert tuple(control_plane.read_log(namespace, "speaks").splitlines()) == LOG_LINES


def test_user_without_a_role_is_refused(control_plane: ControlPlane) -> None:
    with pytest.raises(RequestRefused, match='User "hekla" cannot list resource "secrets"') as refused:
        control_plane.request("GET", "/api/v1/namespaces/kube-system/secrets", token=control_plane.user_token)
    assert refused.value.status == 403


@pytest.mark.thorough
def test_api_server_serves_the_same_objects_after_a_crash(disposable_control_plane: ControlPlane) -> None:
    pods, (node,) = Pods(disposable_control_plane, "default"), disposable_control_plane.add_nodes(1)
    pods.make("before")
    pods.bind("before", node)
    before = pods.wait_for("before", "Running")
    disposable_control_plane.kill_api_server()
    disposable_control_plane.start_api_server()
    assert pods.get("before")["metadata"]["uid"] == before["metadata"]["uid"]
    # A stage that kwok played during the crash may be lost; of new pods it hears after some delay.
    pods.make("after")
    pods.bind("after", node)
    pods.wait_for("after", "Running", seconds=240)
