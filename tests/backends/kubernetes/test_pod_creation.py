"""A pod runs when it was started to the end, once, as it was ordered, and not after it was stopped."""

import asyncio
import dataclasses
import time
from collections.abc import Callable

import pytest
from tests.backends.conftest import Place

from hekla.backends.base import BackendError, PodKey, PodOrder
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.manifests import Manifests
from hekla.domain.phases import PodPhase


@pytest.fixture
def cloud(make_place: Callable[[str], Place]) -> Place:
    return make_place("kubernetes")


class TakenOver(Exception):
    pass


def interrupted(place: Place, monkeypatch: pytest.MonkeyPatch, order: PodOrder) -> None:
    """Start it as far as it is made, but not bound."""

    async def cut(*_: object) -> None:
        raise BackendError("The API server does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(place.backend.parts.pod_creation, "_bind", cut)
        with pytest.raises(BackendError):
            place.start(order)


@pytest.mark.kubernetes
def test_a_pod_that_was_made_and_not_bound_is_not_taken_for_started(cloud, monkeypatch) -> None:
    order = cloud.long()
    interrupted(cloud, monkeypatch, order)
    assert cloud.seen(order.key) is None
    assert cloud.reopened().observe(None).pods == []
    cloud.start(order)
    assert cloud.until(order.key, PodPhase.RUNNING)


@pytest.mark.kubernetes
def test_a_pod_that_is_stopped_while_somebody_starts_it_is_not_bound_any_more(cloud, monkeypatch) -> None:
    order, slow = cloud.long(), cloud.reopened()
    bind = slow.parts.pod_creation._bind

    async def late(pod: object, node: str) -> None:
        await asyncio.to_thread(cloud.stop, order.key, reason="Not wanted")
        await bind(pod, node)

    monkeypatch.setattr(slow.parts.pod_creation, "_bind", late)
    cloud.start(order, at=slow)
    made = slow.parts.api.get(slow.parts.locator.pod_path(order.key))
    assert "nodeName" not in made["spec"]
    assert cloud.seen(order.key).reason == "Stopped"


@pytest.mark.kubernetes
def test_a_pod_that_somebody_deletes_before_it_is_bound_is_not_taken_for_started(cloud, monkeypatch) -> None:
    order = cloud.long()

    async def found(*_: object) -> None:
        """There is one, and then no more."""

    with monkeypatch.context() as patch:
        patch.setattr(cloud.backend.parts.client, "create_once", found)
        with pytest.raises(BackendError):
            cloud.start(order)
    cloud.start(order)
    assert cloud.until(order.key, PodPhase.RUNNING)


@pytest.mark.kubernetes
def test_a_pod_is_bound_only_while_its_order_stands(cloud) -> None:
    """Whoever ordered it may have been stopped while the pod was made, and another may have brought it to its end."""

    order, kept = cloud.long(), cloud.backend.inventory

    def taken_over() -> None:
        if kept().present:
            raise TakenOver

    with pytest.raises(TakenOver):
        list(cloud.backend.runner.start_many([order], heartbeat=taken_over))
    assert cloud.seen(order.key) is None
    cloud.start(order)
    assert cloud.until(order.key, PodPhase.RUNNING)


@pytest.mark.kubernetes
def test_to_stop_thousands_again_and_again_asks_the_server_once_for_each(cloud, monkeypatch) -> None:
    key = cloud.started(cloud.long(grace_seconds=60))
    cloud.backend.observe(None)
    cloud.stop(key, reason="Enough")
    asked = []
    monkeypatch.setattr(cloud.backend.parts.client, "get", lambda *more, **_: asked.append(more))
    cloud.stop(key, reason="Enough")
    assert asked == []


@pytest.mark.kubernetes
def test_an_end_is_told_until_it_is_stuck(cloud) -> None:
    key = cloud.started(cloud.order())
    cloud.ended(key)
    cursor = cloud.backend.observe(None).cursor
    told = cloud.backend.observe(cursor)
    assert [pod.key for pod in told.pods] == [key]
    cloud.backend.forget([key])
    assert cloud.backend.observe(told.cursor).pods == []


def manifest(**more: object) -> dict:
    order = PodOrder(PodKey("job", "worker", 0, 0), "n1", ("true",), "s1")
    return Manifests("c1", KubernetesConfig()).pod(dataclasses.replace(order, **more))


def test_dollars_in_commands_and_variables_arrive_as_they_were_written() -> None:
    """Kubernetes takes `$$` for one of them, and replaces `$(NAME)`."""
    (main,) = manifest(command=("sh", "-c", "echo $$ $(A)"), env={"A": "pa$$word"})["spec"]["containers"]
    assert main["command"] == ["sh", "-c", "echo $$$$ $$(A)"]
    assert main["env"] == [{"name": "A", "value": "pa$$$$word"}]


@pytest.mark.kubernetes
def test_a_file_may_have_a_long_name(cloud) -> None:
    key = cloud.started(cloud.long(files={f"{'folder/' * 30}file": "text"}))
    assert cloud.until(key, PodPhase.RUNNING)


@pytest.mark.kubernetes
def test_what_others_made_lately_is_known_without_listing_all_pods_again(cloud, monkeypatch) -> None:
    other, order = cloud.reopened(), cloud.long()
    assert other.inventory(fresh=False).alive == set(), "nothing was heard yet, so that all is listed"
    other.observe(None)
    monkeypatch.setattr(other, "list_pods", lambda *_: pytest.fail("All pods were listed"))
    cloud.started(order)
    give_up_at = time.monotonic() + 30
    while other.inventory(fresh=False).alive != {order.key}:
        assert time.monotonic() < give_up_at
        other.wait(1.0)
    assert order.key.job in other.inventory(fresh=False).present
