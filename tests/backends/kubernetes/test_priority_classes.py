"""Priority classes on Kubernetes: pods have a class with the right value, if the cluster is configured for it."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.backends.conftest import ClusterFixture
from tests.kubernetes.control_plane import ControlPlane, RequestRefused

from hekla.backends.base import PodKey, PodPriority

pytestmark = pytest.mark.kubernetes
_PATH = "/apis/scheduling.k8s.io/v1/priorityclasses"
_values = itertools.count(1000)
"""Classes are cluster-wide, so each test uses new values."""


@pytest.fixture
def plane(small_cluster: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane; classes of tests are deleted at the end."""
    yield small_cluster
    for one in list_classes(small_cluster):
        if not one.startswith("system-"):
            small_cluster.request("DELETE", f"{_PATH}/{one}")


@pytest.fixture
def cloud(plane: ControlPlane, make_cluster: Callable[[str], ClusterFixture]) -> ClusterFixture:
    return with_priority_classes(make_cluster("kubernetes"))


def with_priority_classes(cluster: ClusterFixture) -> ClusterFixture:
    cluster.config["priority_classes"] = True
    cluster.backend = cluster.reopen()
    return cluster


def list_classes(plane: ControlPlane) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in plane.request("GET", _PATH)["items"]}


def spec(cluster: ClusterFixture, key: PodKey) -> dict[str, Any]:
    return cluster.backend.parts.api.get(cluster.backend.parts.locator.pod_path(key))["spec"]


def start_and_get_spec(cluster: ClusterFixture, index: int = 0, **more: Any) -> dict[str, Any]:
    """Starts the pod, and retries while the server does not know the new class."""
    order, give_up_at = cluster.long(index, **more), time.monotonic() + 60.0
    while True:
        ((_order, error),) = cluster.backend.runner.start_many([order], heartbeat=lambda: None)
        if error is None:
            return spec(cluster, order.key)
        assert time.monotonic() < give_up_at, error
        time.sleep(0.2)


def test_existing_class_of_the_same_name_and_value_is_used(cloud, plane) -> None:
    value = next(_values)
    plane.request("POST", _PATH, {"metadata": {"name": "urgent"}, "value": value})
    found = start_and_get_spec(cloud, priority=PodPriority("urgent", value))
    assert (found["priorityClassName"], found["priority"]) == ("urgent", value)
    assert set(list_classes(plane)) == {"urgent", "system-node-critical", "system-cluster-critical"}


def test_same_name_with_another_value_gives_another_class(cloud, plane) -> None:
    value = next(_values)
    plane.request("POST", _PATH, {"metadata": {"name": "urgent"}, "value": 3})
    found = start_and_get_spec(cloud, priority=PodPriority("urgent", value))
    assert (found["priorityClassName"], found["priority"]) == (f"hekla-{value}", value)
    assert list_classes(plane)["urgent"]["value"] == 3


@pytest.mark.parametrize("sign", [1, -1])
def test_missing_class_is_created_and_never_preempts(cloud, plane, sign: int) -> None:
    value = sign * next(_values)
    found = start_and_get_spec(cloud, priority=PodPriority("Night shift_2", value))
    assert (found["priority"], found["preemptionPolicy"]) == (value, "Never")
    made = list_classes(plane)[found["priorityClassName"]]
    assert made["metadata"]["labels"] == {"hekla.dev/cluster": "c1"}
    assert not made.get("globalDefault")


def test_system_class_is_never_used(cloud) -> None:
    found = start_and_get_spec(cloud, priority=PodPriority("system-node-critical", 2_000_001_000))
    assert found["priority"] == 0, "no other class can have that value"


def test_foreign_class_with_our_name_is_unchanged(cloud, plane) -> None:
    value = next(_values)
    plane.request("POST", _PATH, {"metadata": {"name": f"hekla-{value}"}, "value": 7})
    found = start_and_get_spec(cloud, priority=PodPriority("high", value))
    assert (found.get("priorityClassName"), found["priority"]) == (None, 0)
    assert list_classes(plane)[f"hekla-{value}"]["value"] == 7


def test_class_is_looked_up_once_for_many_pods(cloud, plane, monkeypatch) -> None:
    priority = PodPriority("high", next(_values))
    plane.request("POST", _PATH, {"metadata": {"name": priority.name}, "value": priority.value})
    plane.wait_until(lambda: is_known(plane, cloud, priority.name), 60.0)
    paths, find = [], cloud.backend.parts.client.find

    async def counted(path: str) -> Any:
        paths.append(path)
        return await find(path)

    monkeypatch.setattr(cloud.backend.parts.client, "find", counted)
    orders = [cloud.long(index, priority=priority) for index in range(10)]
    assert [error for _order, error in cloud.backend.runner.start_many(orders, heartbeat=lambda: None) if error] == []
    assert [path for path in paths if path.startswith(_PATH)] == [f"{_PATH}/high"]


def test_deleted_class_is_created_again(cloud, plane) -> None:
    priority = PodPriority("high", next(_values))
    name = start_and_get_spec(cloud, priority=priority)["priorityClassName"]
    plane.request("DELETE", f"{_PATH}/{name}")
    plane.wait_until(lambda: not is_known(plane, cloud, name), 60.0)
    assert start_and_get_spec(cloud, 1, priority=priority)["priorityClassName"] == name


def is_known(plane: ControlPlane, cluster: ClusterFixture, name: str) -> bool:
    """Whether the server accepts pods of this class."""
    spec = {"priorityClassName": name, "containers": [{"name": "main", "image": "none"}]}
    pod = {"metadata": {"name": "asks"}, "spec": spec}
    try:
        plane.request("POST", f"/api/v1/namespaces/{cluster.config['namespace']}/pods?dryRun=All", pod)
    except RequestRefused:
        return False
    return True


def test_pod_without_a_class_is_unchanged_and_needs_no_lookup(cloud, plane, monkeypatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("No class is needed")

    monkeypatch.setattr(cloud.backend.parts.pod_creation._priority_classes, "_find_or_create", never)
    found = start_and_get_spec(cloud)
    assert "priorityClassName" not in found
    assert set(list_classes(plane)) == {"system-node-critical", "system-cluster-critical"}


def test_no_class_is_created_if_not_configured(plane, make_cluster) -> None:
    cluster = make_cluster("kubernetes")
    found = start_and_get_spec(cluster, priority=PodPriority("high", next(_values)))
    assert "priorityClassName" not in found
    assert set(list_classes(plane)) == {"system-node-critical", "system-cluster-critical"}


def test_pod_starts_without_a_class_if_permissions_are_missing(plane, make_cluster) -> None:
    cluster = with_priority_classes(make_cluster("kubernetes-tenants"))
    assert start_and_get_spec(cluster, priority=PodPriority("high", next(_values)))["priority"] == 0
