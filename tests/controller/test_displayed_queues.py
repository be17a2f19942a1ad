"""Those who make pods in a cluster themselves see there which queues they may name, and how these stand."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.controller import conftest
from tests.controller.conftest import World
from tests.kubernetes.control_plane import ControlPlane, RequestRefused
from tests.kubernetes.plugin import _for_the_user, _place, _rights

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
    """The kind Queue as Volcano defines it, without Volcano, and the rights that showing queues takes."""
    is_ours = not there(small_cluster, f"{_KINDS}/{_NAME}")
    if is_ours:
        small_cluster.request("POST", _KINDS, kind())
    given = [_for_the_user(one, "hekla") for one in _rights("rights-adopted-queues.yaml")]
    for one in given:
        small_cluster.request("POST", _place(one, ""), one)
    small_cluster.wait_until(lambda: there(small_cluster, _QUEUES, small_cluster.user_token), 60.0)
    yield
    for one in given:
        small_cluster.request("DELETE", f"{_place(one, '')}/{one['metadata']['name']}")
    if is_ours:
        small_cluster.request("DELETE", f"{_KINDS}/{_NAME}")
        small_cluster.wait_until(lambda: not there(small_cluster, f"{_KINDS}/{_NAME}"), 60.0)


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


def there(plane: ControlPlane, path: str, token: str | None = None) -> bool:
    try:
        plane.request("GET", path, token=token)
    except RequestRefused:
        return False
    return True


@pytest.fixture
def shared(world: World, one_machine: Object, monkeypatch: pytest.MonkeyPatch) -> World:
    """A cluster on which a namespace of others is looked after, and which shows its queues there."""
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
    """Without any queue to begin with: Volcano, where tests of it went before, leaves its own."""
    clear(small_cluster)
    yield small_cluster
    clear(small_cluster)


def clear(plane: ControlPlane) -> None:
    for name in shown(plane):
        plane.request("DELETE", f"{_QUEUES}/{name}")
    plane.wait_until(lambda: not shown(plane), 60.0)


def shown(plane: ControlPlane) -> dict[str, Object]:
    return {one["metadata"]["name"]: one for one in plane.request("GET", _QUEUES)["items"]}


def stands(plane: ControlPlane, name: str) -> Object:
    return dict(shown(plane).get(name, {}).get("status", {}))


def submit(world: World, queue: str, cpu: str) -> Job:
    task = {"name": "main", "command": ["x"], "resources": {"cpu": cpu}, "env": {"HEKLA_SIM_SECONDS": "1000"}}
    spec = JobSpec.parse({"name": f"job-{Job.objects.count()}", "queue": queue, "tasks": [task]})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


KUBERNETES = pytest.mark.parametrize("world", ["kubernetes"], indirect=True)


@KUBERNETES
def test_work_goes_on_where_queues_cannot_be_shown(shared, caplog) -> None:
    """The first test: the kind, and the right to it, come with those that follow."""
    job = submit(shared, "default", "1")
    shared.turn_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.RUNNING)
    for _ in range(3):
        shown_queues_are_due(shared)
    assert caplog.text.count("queues cannot be shown") == 1


def shown_queues_are_due(world: World) -> None:
    controller = controllers.get(world.cluster.pk)
    controller.full_look.done_at, controller.state.displayed_queues.at = None, float("-inf")
    controllers.reconcile(world.cluster)


@KUBERNETES
def test_the_queues_of_the_cluster_are_seen_there_as_they_are(shared, plane) -> None:
    above = queues.create(cluster=shared.cluster, name="lab", actor=PLATFORM, now=clock.now())
    night = queues.create(cluster=shared.cluster, name="night", actor=PLATFORM, now=clock.now())
    bounds = {"weight": 3, "capability": {"cpu": "2"}, "guarantee": {"cpu": "1"}, "reclaimable": False}
    queues.change(night, {**bounds, "parent": above}, by=shared.alice, actor=PLATFORM, now=clock.now())
    shared.turn_until(lambda: shown(plane).keys() == {"default", "lab", "night"})
    spec = shown(plane)["night"]["spec"]
    assert (spec["weight"], spec["parent"], spec["reclaimable"]) == (3, "lab", False)
    assert (spec["capability"], spec["guarantee"]) == ({"cpu": "2"}, {"resource": {"cpu": "1"}})
    queues.change(night, {"capability": {}, "weight": 2}, by=shared.alice, actor=PLATFORM, now=clock.now())
    shared.turn_until(lambda: shown(plane)["night"]["spec"]["weight"] == 2)
    assert "capability" not in shown(plane)["night"]["spec"]


@KUBERNETES
def test_it_is_seen_what_a_queue_holds_and_how_many_wait(shared, plane) -> None:
    submit(shared, "default", "3")
    submit(shared, "default", "3")
    shared.turn_until(lambda: stands(plane, "default").get("running") == 1)
    found = stands(plane, "default")
    assert (found["state"], found["allocated"]) == ("Open", {"cpu": "3", "pods": "1"})
    assert found["pending"] + found["inqueue"] == 1


@KUBERNETES
def test_a_closed_queue_is_closing_until_it_is_empty(shared, plane) -> None:
    queues.create(cluster=shared.cluster, name="night", actor=PLATFORM, now=clock.now())
    submit(shared, "default", "1")
    for queue in Queue.objects.all():
        queues.set_state(queue, "closed", by=shared.alice, actor=PLATFORM, now=clock.now())
    states = {"default": "Closing", "night": "Closed"}
    shared.turn_until(
        lambda: {name: one.get("status", {}).get("state") for name, one in shown(plane).items()} == states
    )


@KUBERNETES
def test_what_somebody_changes_or_deletes_is_put_right(shared, plane) -> None:
    shared.turn_until(lambda: stands(plane, "default").get("state") == "Open")
    plane.request("PATCH", f"{_QUEUES}/default", {"spec": {"weight": 9}}, content_type="application/merge-patch+json")
    shared.turn_until(lambda: shown(plane)["default"]["spec"]["weight"] == 1)
    plane.request("DELETE", f"{_QUEUES}/default")
    shared.turn_until(lambda: stands(plane, "default").get("state") == "Open")


@KUBERNETES
def test_queues_of_others_are_never_touched(shared, plane) -> None:
    for name in ("default", "theirs"):
        plane.request("POST", _QUEUES, {**empty(name), "spec": {"weight": 9}})
    queues.create(cluster=shared.cluster, name="ours", actor=PLATFORM, now=clock.now())
    shared.turn_until(lambda: stands(plane, "ours").get("state") == "Open")
    Queue.objects.filter(name="ours").delete()
    shared.turn_until(lambda: "ours" not in shown(plane))
    assert {name: (one["spec"]["weight"], one.get("status")) for name, one in shown(plane).items()} == {
        "default": (9, None),
        "theirs": (9, None),
    }


def empty(name: str) -> Object:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}


@KUBERNETES
@pytest.mark.parametrize("begins_anew", [False, True])
def test_they_are_taken_away_where_they_are_not_to_be_seen_any_more(shared, plane, one_machine, begins_anew) -> None:
    shared.turn_until(lambda: "default" in shown(plane))
    configure(shared, one_machine, shows_queues=False)
    if begins_anew:
        controllers.reset()
    shared.turn_until(lambda: not shown(plane))


@KUBERNETES
def test_they_are_taken_away_where_pods_of_others_are_not_placed_any_more(shared, plane, one_machine) -> None:
    shared.turn_until(lambda: "default" in shown(plane))
    clusters.change(shared.cluster, {"config": one_machine}, actor=PLATFORM, now=clock.now())
    shared.turn_until(lambda: not shown(plane))


@KUBERNETES
def test_unless_it_is_asked_for_no_queue_is_shown(shared, plane, one_machine) -> None:
    configure(shared, one_machine, shows_queues=False)
    job = submit(shared, "default", "1")
    shared.turn_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.RUNNING)
    assert shown(plane) == {}


@KUBERNETES
def test_a_queue_whose_name_kubernetes_does_not_take_is_left_out(shared, plane) -> None:
    queues.create(cluster=shared.cluster, name="Night_2", actor=PLATFORM, now=clock.now())
    shared.turn_until(lambda: "default" in shown(plane))
    assert shown(plane).keys() == {"default"}
