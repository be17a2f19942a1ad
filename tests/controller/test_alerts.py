"""A node of a real API server fails: its rule fires, acts and notifies within seconds, and clears when it recovers."""

import time
from typing import Any

import pytest
from celery import current_app
from tests.controller.conftest import World
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps import wakeups
from hekla.apps.alerts import services
from hekla.apps.alerts.models import Alert, AlertChange
from hekla.apps.clusters.models import Node
from hekla.apps.notifications.models import Notification
from hekla.apps.queues.models import Queue
from hekla.controller.controllers import controllers
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.lib import clock

MOST_SECONDS = 15.0
BROKEN = "hekla.dev/test-broken"
DOWN = {
    **{"name": "node down", "measure": "node_not_ready", "threshold": 0, "severity": "critical"},
    "actions": [
        {"kind": "notify", "roles": ["operators"]},
        {"kind": "cordon", "undo": True},
        {"kind": "hold_queue", "queue": "default", "undo": True},
    ],
}


class Worker:
    """Runs the tasks that wake-ups of alerts request, as a Celery worker does."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    def send_task(self, name: str, **_options: Any) -> None:
        self.requested.append(name)

    def work(self) -> None:
        """Run what was requested since the last call."""
        names, self.requested = self.requested, []
        for name in dict.fromkeys(names):
            if name.startswith("hekla.alerts."):
                current_app.tasks[name]()


def break_node(plane: ControlPlane, name: str) -> None:
    condition = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "the disk has failed"}
    patch = {"content_type": "application/strategic-merge-patch+json"}
    plane.request("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"annotations": {BROKEN: "yes"}}}, **patch)
    plane.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [condition]}}, **patch)


def mend_node(plane: ControlPlane, name: str) -> None:
    body = {"metadata": {"annotations": {BROKEN: None}}}
    plane.request("PATCH", f"/api/v1/nodes/{name}", body, content_type="application/merge-patch+json")


@pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
def test_a_real_node_that_fails_is_acted_on_within_seconds_and_recovers(
    world: World, small_cluster: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker()
    monkeypatch.setattr(wakeups, "current_app", worker)
    current_app.loader.import_default_modules()
    world.alice.platform_role = "operator"
    world.alice.save()
    services.create(spec=AlertRuleSpec.parse(DOWN), tenant=None, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Node.objects.filter(is_ready=True).exists())
    worker.work()

    def is_held() -> bool:
        worker.work()
        return Node.objects.get().is_cordoned and Queue.objects.get().is_draining

    name, began = Node.objects.get().name, time.monotonic()
    break_node(small_cluster, name)
    world.reconcile_until(is_held)
    assert time.monotonic() - began < MOST_SECONDS
    assert Alert.objects.get().state == "firing"
    assert Notification.objects.get(user=world.alice).facts["about"] == f"{name} (kubernetes)"

    def is_free() -> bool:
        controllers.get(world.cluster.pk).reading_nodes.done_at = None  # nodes are read every ten seconds
        worker.work()
        return not Node.objects.get().is_cordoned and Queue.objects.get().is_open

    mend_node(small_cluster, name)
    world.reconcile_until(is_free)
    assert not Alert.objects.exists()
    assert list(AlertChange.objects.order_by("pk").values_list("new", flat=True)) == ["firing", "normal"]
    assert Notification.objects.filter(user=world.alice).count() == 2
