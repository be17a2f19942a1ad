"""Queues shown in the cluster: users of kubectl see which queues they can name, with their state."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.controller import conftest
from tests.controller.conftest import World
from tests.kubernetes.control_plane import ControlPlane, RequestRefused
from tests.kubernetes.plugin import _place, _rights, _with_user

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.controller import displayed_queues
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.lib import clock

Object = dict[str, Any]
pytestmark = pytest.mark.kubernetes
_KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAME = "queues.scheduling.volcano.sh"
_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_AMOUNTS = {"type": "object", "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True}}  # fmt: skip
_COUNT = {"type": "integer", "format": "int32", "minimum": 0}
_SPEC = {
    "weight": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535, "default": 1},
    "priority": _COUNT,
    "reclaimable": {"type": "boolean"},
    "parent": {"type": "string"},
    "capability": _AMOUNTS,
    "deserved": _AMOUNTS,
    "guarantee": {"type": "object", "properties": {"resource": _AMOUNTS}},
}
_STATUS = {
    "state": {"type": "string", "enum": ["Open", "Closed", "Closing", "Unknown"]},
    "allocated": _AMOUNTS,
    **dict.fromkeys(("pending", "inqueue", "running", "unknown", "completed"), _COUNT),
}


@pytest.fixture(scope="module")
def queue_kind(small_cluster: ControlPlane) -> Iterator[None]:
    """Volcano's kind Queue, without Volcano, and the rights that showing queues needs."""
    was_missing = not exists(small_cluster, f"{_KINDS}/{_NAME}")
    if was_missing:
        small_cluster.request("POST", _KINDS, kind())
    roles = [_with_user(one, "hekla") for one in _rights("rights-adopted-queues.yaml")]
    for one in roles:
        small_cluster.request("POST", _place(one, ""), one)
    small_cluster.wait_until(lambda: exists(small_cluster, _QUEUES, small_cluster.user_token), 60.0)
    yield
    for one in roles:
        small_cluster.request("DELETE", f"{_place(one, '')}/{one['metadata']['name']}")
    if was_missing:
        small_cluster.request("DELETE", f"{_KINDS}/{_NAME}")
        small_cluster.wait_until(lambda: not exists(small_cluster, f"{_KINDS}/{_NAME}"), 60.0)


def kind() -> Object:
    parts = {name: {"type": "object", "properties": fields} for name, fields in (("spec", _SPEC), ("status", _STATUS))}
    schema = {"openAPIV3Schema": {"type": "object", "properties": parts}}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "metadata": {"name": _NAME},
        "spec": {
            "group": "scheduling.volcano.sh",
            "scope": "Cluster",
            "names": {"plural": "queues", "singular": "queue", "kind": "Queue", "listKind": "QueueList"},
            "versions": [version],
        },
    }


def exists(plane: ControlPlane, path: str, token: str | None = None) -> bool:
    try:
        plane.request("GET", path, token=token)
    except RequestRefused:
        return False
    return True


@pytest.fixture
def shared(world: World, one_machine: Object, monkeypatch: pytest.MonkeyPatch) -> World:
    """A cluster that schedules external pods of a namespace and shows its queues."""
    monkeypatch.setattr(conftest, "LAST_SECONDS", 120.0)
    monkeypatch.setattr(displayed_queues, "EVERY_SECONDS", 0.5)
    configure(world, one_machine)
    return world


def configure(world: World, machine: Object, **more: Any) -> None:
    external_pods = {"namespaces": {machine["namespace"]: "lab"}, "owner": "alice", "shows_queues": True, **more}
    clusters.change(
        world.cluster, {"config": {**machine, "external_pods": external_pods}}, actor=PLATFORM, now=clock.now()
    )


@pytest.fixture
def plane(small_cluster: ControlPlane, queue_kind: None) -> Iterator[ControlPlane]:
    """Starts without queues: Volcano's own tests may have left some."""
    clear(small_cluster)
    yield small_cluster
    clear(small_cluster)


def clear(plane: ControlPlane) -> None:
    for name in displayed(plane):
        plane.request("DELETE", f"{_QUEUES}/{name}")
    plane.wait_until(lambda: not displayed(plane), 60.0)


def displayed(plane: ControlPlane) -> dict[str, Object]:
    return {one["metadata"]["name"]: one for one in plane.request("GET", _QUEUES)["items"]}


def status_of(plane: ControlPlane, name: str) -> Object:
    return dict(displayed(plane).get(name, {}).get("status", {}))


def submit(world: World, queue: str, cpu: str) -> Job:
    task = {"name": "main", "command": ["x"], "resources": {"cpu": cpu}, "env": {"HEKLA_SIM_SECONDS": "1000"}}
    spec = JobSpec.parse({"name": f"job-{Job.objects.count()}", "queue": queue, "tasks": [task]})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


KUBERNETES = pytest.mark.parametrize("world", ["kubernetes"], indirect=True)


@KUBERNETES
def test_reconciliation_continues_if_queues_cannot_be_shown(shared, caplog) -> None:
    """This test is first: the later ones install the kind and its rights."""
    job = submit(shared, "default", "1")
    shared.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.RUNNING)
    for _ in range(3):
        show_queues_now(shared)
    assert caplog.text.count("queues cannot be shown") == 1


def show_queues_now(world: World) -> None:
    controller = controllers.get(world.cluster.pk)
    controller.full_look.done_at, controller.state.displayed_queues.at = None, float("-inf")
    controllers.reconcile(world.cluster)


@KUBERNETES
def test_queues_are_shown_with_their_attributes(shared, plane) -> None:
    above = queues.create(cluster=shared.cluster, name="lab", actor=PLATFORM, now=clock.now())
    night = queues.create(cluster=shared.cluster, name="night", actor=PLATFORM, now=clock.now())
    bounds = {"weight": 3, "capability": {"cpu": "2"}, "guarantee": {"cpu": "1"}, "reclaimable": False}
    queues.change(night, {**bounds, "parent": above}, by=shared.alice, actor=PLATFORM, now=clock.now())
    shared.reconcile_until(lambda: displayed(plane).keys() == {"default", "lab", "night"})
    spec = displayed(plane)["night"]["spec"]
    assert (spec["weight"], spec["parent"], spec["reclaimable"]) == (3, "lab", False)
    assert (spec["capability"], spec["guarantee"]) == ({"cpu": "2"}, {"resource": {"cpu": "1"}})
    queues.change(night, {"capability": {}, "weight": 2}, by=shared.alice, actor=PLATFORM, now=clock.now())
    shared.reconcile_until(lambda: displayed(plane)["night"]["spec"]["weight"] == 2)
    assert "capability" not in displayed(plane)["night"]["spec"]


@KUBERNETES
def test_queue_status_has_allocation_and_pod_counts(shared, plane) -> None:
    submit(shared, "default", "3")
    submit(shared, "default", "3")
    shared.reconcile_until(lambda: status_of(plane, "default").get("running") == 1)
    found = status_of(plane, "default")
    assert (found["state"], found["allocated"]) == ("Open", {"cpu": "3", "pods": "1"})
    assert found["pending"] + found["inqueue"] == 1


@KUBERNETES
def test_closed_queue_is_closing_until_it_is_empty(shared, plane) -> None:
    queues.create(cluster=shared.cluster, name="night", actor=PLATFORM, now=clock.now())
    submit(shared, "default", "1")
    for queue in Queue.objects.all():
        queues.set_state(queue, "closed", by=shared.alice, actor=PLATFORM, now=clock.now())
    states = {"default": "Closing", "night": "Closed"}
    shared.reconcile_until(
        lambda: {name: one.get("status", {}).get("state") for name, one in displayed(plane).items()} == states
    )


@KUBERNETES
def test_foreign_changes_and_deletions_are_reverted(shared, plane) -> None:
    shared.reconcile_until(lambda: status_of(plane, "default").get("state") == "Open")
    plane.request("PATCH", f"{_QUEUES}/default", {"spec": {"weight": 9}}, content_type="application/merge-patch+json")
    shared.reconcile_until(lambda: displayed(plane)["default"]["spec"]["weight"] == 1)
    plane.request("DELETE", f"{_QUEUES}/default")
    shared.reconcile_until(lambda: status_of(plane, "default").get("state") == "Open")


@KUBERNETES
def test_foreign_queues_are_never_changed(shared, plane) -> None:
    for name in ("default", "theirs"):
        plane.request("POST", _QUEUES, {**empty(name), "spec": {"weight": 9}})
    queues.create(cluster=shared.cluster, name="ours", actor=PLATFORM, now=clock.now())
    shared.reconcile_until(lambda: status_of(plane, "ours").get("state") == "Open")
    Queue.objects.filter(name="ours").delete()
    shared.reconcile_until(lambda: "ours" not in displayed(plane))
    assert {name: (one["spec"]["weight"], one.get("status")) for name, one in displayed(plane).items()} == {
        "default": (9, None),
        "theirs": (9, None),
    }


def empty(name: str) -> Object:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}


@KUBERNETES
@pytest.mark.parametrize("restarts", [False, True])
def test_queues_are_removed_after_showing_is_disabled(shared, plane, one_machine, restarts) -> None:
    shared.reconcile_until(lambda: "default" in displayed(plane))
    configure(shared, one_machine, shows_queues=False)
    if restarts:
        controllers.reset()
    shared.reconcile_until(lambda: not displayed(plane))


@KUBERNETES
def test_queues_are_removed_after_external_pods_are_disabled(shared, plane, one_machine) -> None:
    shared.reconcile_until(lambda: "default" in displayed(plane))
    clusters.change(shared.cluster, {"config": one_machine}, actor=PLATFORM, now=clock.now())
    shared.reconcile_until(lambda: not displayed(plane))


@KUBERNETES
def test_no_queue_is_shown_by_default(shared, plane, one_machine) -> None:
    configure(shared, one_machine, shows_queues=False)
    job = submit(shared, "default", "1")
    shared.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.RUNNING)
    assert displayed(plane) == {}


@KUBERNETES
def test_queue_with_a_name_invalid_in_kubernetes_is_left_out(shared, plane) -> None:
    queues.create(cluster=shared.cluster, name="Night_2", actor=PLATFORM, now=clock.now())
    shared.reconcile_until(lambda: "default" in displayed(plane))
    assert displayed(plane).keys() == {"default"}
