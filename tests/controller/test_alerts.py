"""A node of a real API server fails: its rule fires, acts and notifies within seconds, and clears when it recovers."""

import time
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from tests.controller.conftest import World
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps import wakeups
from hekla.apps.alerts import services, wake
from hekla.apps.alerts.models import Alert, AlertChange
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.notifications.models import Notification
from hekla.apps.queues.models import Queue
from hekla.controller.controllers import controllers
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.lib import clock

MOST = timedelta(seconds=15)
EVALUATED = timedelta(seconds=5)
"""After the controller has read that the node is not ready."""
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
        self.requested: list[tuple[float, str]] = []

    def send_task(self, name: str, *, countdown: float | None = None, **_options: Any) -> None:
        self.requested.append((time.monotonic() + (countdown or 0), name))

    def work(self) -> None:
        """Run what is due. A later event counts on a run that is not due yet."""
        now = time.monotonic()
        due = [name for at, name in self.requested if at <= now]
        self.requested = [(at, name) for at, name in self.requested if at > now]
        for name in dict.fromkeys(due):
            if name.startswith("hekla.alerts."):
                current_app.tasks[name]()


def break_node(plane: ControlPlane, name: str) -> None:
    """Reports that the node is not ready. Repeated: the pretended kubelet may be about to report that it is."""
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
    for wakeup in (wake.evaluating, wake.acting):
        monkeypatch.setattr(wakeup, "_ahead", float("-inf"))  # no run that an earlier test has requested is on its way
    current_app.loader.import_default_modules()
    world.alice.platform_role = "operator"
    world.alice.save()
    services.create(spec=AlertRuleSpec.parse(DOWN), tenant=None, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Node.objects.filter(is_ready=True).exists())
    worker.work()

    timer = controllers.get(world.cluster.pk).reading_nodes
    assert timer.every + EVALUATED <= MOST

    name = Node.objects.get().name

    def is_held() -> bool:
        break_node(small_cluster, name)
        timer.done_at = None  # read now: the test need not wait
        worker.work()
        return Node.objects.get().is_cordoned and Queue.objects.get().is_draining

    world.reconcile_until(is_held)
    broken_at = LoggedEvent.objects.filter(kind="NodeChanged", payload__ready=False).earliest("pk").at
    fired = Alert.objects.get()
    assert fired.state == "firing"
    assert fired.fired_at - broken_at < EVALUATED
    assert Notification.objects.get(user=world.alice).facts["about"] == f"{name} (kubernetes)"

    def is_free() -> bool:
        timer.done_at = None
        worker.work()
        return not Node.objects.get().is_cordoned and Queue.objects.get().is_open

    mend_node(small_cluster, name)
    world.reconcile_until(is_free)
    assert not Alert.objects.exists()
    assert list(AlertChange.objects.order_by("pk").values_list("new", flat=True)) == ["firing", "normal"]
    assert Notification.objects.filter(user=world.alice).count() == 2
