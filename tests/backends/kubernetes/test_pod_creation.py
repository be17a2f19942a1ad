"""Pod creation: a pod runs if its start completed, once, as ordered, and not after it was stopped."""

import asyncio
import dataclasses
import time
from collections.abc import Callable

import pytest
from tests.backends.conftest import ClusterFixture

from hekla.backends.base import BackendError, PodKey, PodOrder
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.manifests import Manifests
from hekla.domain.phases import PodPhase


@pytest.fixture
def cloud(make_cluster: Callable[[str], ClusterFixture]) -> ClusterFixture:
    return make_cluster("kubernetes")


class LeaseLost(Exception):
    pass


def interrupt_start(cluster: ClusterFixture, monkeypatch: pytest.MonkeyPatch, order: PodOrder) -> None:
    """Creates the pod without binding it."""

    async def fail(*_: object) -> None:
        raise BackendError("The API server does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(cluster.backend.parts.pod_creation, "_bind", fail)
        with pytest.raises(BackendError):
            cluster.start(order)


@pytest.mark.kubernetes
def test_unbound_pod_does_not_count_as_started(cloud, monkeypatch) -> None:
    order = cloud.long()
    interrupt_start(cloud, monkeypatch, order)
    assert cloud.observation(order.key) is None
    assert cloud.reopen().observe(None).pods == []
    cloud.start(order)
    assert cloud.until(order.key, PodPhase.RUNNING)


@pytest.mark.kubernetes
def test_pod_stopped_during_its_start_is_not_bound(cloud, monkeypatch) -> None:
    order, slow = cloud.long(), cloud.reopen()
    bind = slow.parts.pod_creation._bind

    async def stop_and_bind(pod: object, node: str) -> None:
        await asyncio.to_thread(cloud.stop, order.key, reason="Not wanted")
        await bind(pod, node)

    monkeypatch.setattr(slow.parts.pod_creation, "_bind", stop_and_bind)
    cloud.start(order, at=slow)
    made = slow.parts.api.get(slow.parts.locator.pod_path(order.key))
    assert "nodeName" not in made["spec"]
    assert cloud.observation(order.key).reason == "Stopped"


@pytest.mark.kubernetes
def test_pod_deleted_before_binding_does_not_count_as_started(cloud, monkeypatch) -> None:
    order = cloud.long()

    async def found(*_: object) -> None:
        """The create call finds an existing pod, which is then gone."""

    with monkeypatch.context() as patch:
        patch.setattr(cloud.backend.parts.client, "create_once", found)
        with pytest.raises(BackendError):
            cloud.start(order)
    cloud.start(order)
    assert cloud.until(order.key, PodPhase.RUNNING)


@pytest.mark.kubernetes
def test_pod_is_bound_only_under_the_lease(cloud) -> None:
    """The controller may have lost its lease after it created the pod, and another one may have completed the pod."""

    order, inventory = cloud.long(), cloud.backend.inventory

    def lose_lease() -> None:
        if inventory().present:
            raise LeaseLost

    with pytest.raises(LeaseLost):
        list(cloud.backend.runner.start_many([order], heartbeat=lose_lease))
    assert cloud.observation(order.key) is None
    cloud.start(order)
    assert cloud.until(order.key, PodPhase.RUNNING)


@pytest.mark.kubernetes
def test_repeated_stop_sends_no_more_requests(cloud, monkeypatch) -> None:
    key = cloud.started(cloud.long(grace_seconds=60))
    cloud.backend.observe(None)
    cloud.stop(key, reason="Enough")
    requests = []
    monkeypatch.setattr(cloud.backend.parts.client, "get", lambda *more, **_: requests.append(more))
    cloud.stop(key, reason="Enough")
    assert requests == []


@pytest.mark.kubernetes
def test_ended_pod_is_reported_until_it_is_forgotten(cloud) -> None:
    key = cloud.started(cloud.order())
    cloud.ended(key)
    cursor = cloud.backend.observe(None).cursor
    observed = cloud.backend.observe(cursor)
    assert [pod.key for pod in observed.pods] == [key]
    cloud.backend.forget([key])
    assert cloud.backend.observe(observed.cursor).pods == []


def manifest(**more: object) -> dict:
    order = PodOrder(PodKey("job", "worker", 0, 0), "n1", ("true",), "s1")
    return Manifests("c1", KubernetesConfig()).pod(dataclasses.replace(order, **more))


def test_dollars_in_commands_and_variables_are_preserved() -> None:
    """Kubernetes reads `$$` as one dollar, and replaces `$(NAME)`."""
    (main,) = manifest(command=("sh", "-c", "echo $$ $(A)"), env={"A": "pa$$word"})["spec"]["containers"]
    assert main["command"] == ["sh", "-c", "echo $$$$ $$(A)"]
    assert main["env"] == [{"name": "A", "value": "pa$$$$word"}]


def test_image_runs_its_own_command_in_its_own_folder() -> None:
    (main,) = manifest(command=(), args=("--port", "$(A)"), image="server:1")["spec"]["containers"]
    assert (main["image"], main["args"], "command" in main, "workingDir" in main) == (
        "server:1",
        ["--port", "$$(A)"],
        False,
        False,
    )
    (main,) = manifest(command=(), working_dir="src")["spec"]["containers"]
    assert main["workingDir"] == "/work/src"
    (main,) = manifest()["spec"]["containers"]
    assert (main["command"], main["workingDir"]) == (["true"], "/work")


@pytest.mark.kubernetes
def test_file_may_have_a_long_name(cloud) -> None:
    key = cloud.started(cloud.long(files={f"{'folder/' * 30}file": "text"}))
    assert cloud.until(key, PodPhase.RUNNING)


@pytest.mark.kubernetes
def test_inventory_follows_other_processes_without_listing_all_pods(cloud, monkeypatch) -> None:
    other, order = cloud.reopen(), cloud.long()
    assert other.inventory(fresh=False).alive == set(), "without watch events, all pods are listed"
    other.observe(None)
    monkeypatch.setattr(other, "list_pods", lambda *_: pytest.fail("All pods were listed"))
    cloud.started(order)
    give_up_at = time.monotonic() + 30
    while other.inventory(fresh=False).alive != {order.key}:
        assert time.monotonic() < give_up_at
        other.wait(1.0)
    assert order.key.job in other.inventory(fresh=False).present
