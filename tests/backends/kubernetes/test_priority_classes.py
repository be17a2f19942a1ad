"""Pods of jobs that name a priority class have one that the cluster knows, where the cluster is to have them."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.backends.conftest import Place
from tests.kubernetes.control_plane import ControlPlane, RequestRefused

from hekla.backends.base import PodKey, PodPriority

pytestmark = pytest.mark.kubernetes
_PLACE = "/apis/scheduling.k8s.io/v1/priorityclasses"
_values = itertools.count(1000)
"""Classes are the whole cluster's, and so are those that other tests make."""


@pytest.fixture
def plane(small_cluster: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane; classes that are not the system's go with the test."""
    yield small_cluster
    for one in classes(small_cluster):
        if not one.startswith("system-"):
            small_cluster.request("DELETE", f"{_PLACE}/{one}")


@pytest.fixture
def cloud(plane: ControlPlane, make_place: Callable[[str], Place]) -> Place:
    return with_classes(make_place("kubernetes"))


def with_classes(place: Place) -> Place:
    place.config["priority_classes"] = True
    place.backend = place.reopened()
    return place


def classes(plane: ControlPlane) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in plane.request("GET", _PLACE)["items"]}


def spec(place: Place, key: PodKey) -> dict[str, Any]:
    return place.backend.parts.api.get(place.backend.parts.locator.pod_path(key))["spec"]


def started(place: Place, index: int = 0, **more: Any) -> dict[str, Any]:
    """As the controller starts pods: again, where the server has not heard of a class yet."""
    order, give_up_at = place.long(index, **more), time.monotonic() + 60.0
    while True:
        ((_order, error),) = place.backend.runner.start_many([order], heartbeat=lambda: None)
        if error is None:
            return spec(place, order.key)
        assert time.monotonic() < give_up_at, error
        time.sleep(0.2)


def test_a_pod_has_the_class_of_the_cluster_that_has_its_name_and_value(cloud, plane) -> None:
    value = next(_values)
    plane.request("POST", _PLACE, {"metadata": {"name": "urgent"}, "value": value})
    found = started(cloud, priority=PodPriority("urgent", value))
    assert (found["priorityClassName"], found["priority"]) == ("urgent", value)
    assert set(classes(plane)) == {"urgent", "system-node-critical", "system-cluster-critical"}


def test_one_of_that_name_with_another_value_is_another_class(cloud, plane) -> None:
    value = next(_values)
    plane.request("POST", _PLACE, {"metadata": {"name": "urgent"}, "value": 3})
    found = started(cloud, priority=PodPriority("urgent", value))
    assert (found["priorityClassName"], found["priority"]) == (f"hekla-{value}", value)
    assert classes(plane)["urgent"]["value"] == 3


@pytest.mark.parametrize("sign", [1, -1])
def test_a_class_that_is_missing_is_made_and_evicts_nobody(cloud, plane, sign: int) -> None:
    value = sign * next(_values)
    found = started(cloud, priority=PodPriority("Night shift_2", value))
    assert (found["priority"], found["preemptionPolicy"]) == (value, "Never")
    made = classes(plane)[found["priorityClassName"]]
    assert made["metadata"]["labels"] == {"hekla.dev/cluster": "c1"}
    assert not made.get("globalDefault")


def test_a_class_of_the_system_is_never_taken(cloud) -> None:
    found = started(cloud, priority=PodPriority("system-node-critical", 2_000_001_000))
    assert found["priority"] == 0, "nor can anybody else make one of that value"


def test_an_object_of_somebody_else_with_the_name_of_ours_is_left_alone(cloud, plane) -> None:
    value = next(_values)
    plane.request("POST", _PLACE, {"metadata": {"name": f"hekla-{value}"}, "value": 7})
    found = started(cloud, priority=PodPriority("high", value))
    assert (found.get("priorityClassName"), found["priority"]) == (None, 0)
    assert classes(plane)[f"hekla-{value}"]["value"] == 7


def test_many_pods_of_a_class_ask_for_it_once(cloud, plane, monkeypatch) -> None:
    wanted = PodPriority("high", next(_values))
    plane.request("POST", _PLACE, {"metadata": {"name": wanted.name}, "value": wanted.value})
    plane.wait_until(lambda: knows(plane, cloud, wanted.name), 60.0)
    asked, find = [], cloud.backend.parts.client.find

    async def counted(path: str) -> Any:
        asked.append(path)
        return await find(path)

    monkeypatch.setattr(cloud.backend.parts.client, "find", counted)
    orders = [cloud.long(index, priority=wanted) for index in range(10)]
    assert [error for _order, error in cloud.backend.runner.start_many(orders, heartbeat=lambda: None) if error] == []
    assert [path for path in asked if path.startswith(_PLACE)] == [f"{_PLACE}/high"]


def test_a_class_that_somebody_deleted_is_made_again(cloud, plane) -> None:
    wanted = PodPriority("high", next(_values))
    name = started(cloud, priority=wanted)["priorityClassName"]
    plane.request("DELETE", f"{_PLACE}/{name}")
    plane.wait_until(lambda: not knows(plane, cloud, name), 60.0)
    assert started(cloud, 1, priority=wanted)["priorityClassName"] == name


def knows(plane: ControlPlane, place: Place, name: str) -> bool:
    """Whether the server still takes pods of this class."""
    spec = {"priorityClassName": name, "containers": [{"name": "main", "image": "none"}]}
    pod = {"metadata": {"name": "asks"}, "spec": spec}
    try:
        plane.request("POST", f"/api/v1/namespaces/{place.config['namespace']}/pods?dryRun=All", pod)
    except RequestRefused:
        return False
    return True


def test_a_pod_whose_job_names_no_class_is_as_it_was_and_asks_for_nothing(cloud, plane, monkeypatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("Nobody wants a class")

    monkeypatch.setattr(cloud.backend.parts.pod_creation._priority_classes, "_find_or_create", never)
    found = started(cloud)
    assert "priorityClassName" not in found
    assert set(classes(plane)) == {"system-node-critical", "system-cluster-critical"}


def test_where_the_cluster_is_not_to_have_them_nothing_is_made(plane, make_place) -> None:
    place = make_place("kubernetes")
    found = started(place, priority=PodPriority("high", next(_values)))
    assert "priorityClassName" not in found
    assert set(classes(plane)) == {"system-node-critical", "system-cluster-critical"}


def test_a_pod_starts_without_a_class_where_rights_are_missing(plane, make_place) -> None:
    place = with_classes(make_place("kubernetes-tenants"))
    assert started(place, priority=PodPriority("high", next(_values)))["priority"] == 0
