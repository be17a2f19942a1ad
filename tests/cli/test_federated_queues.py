"""Federated queues on the command line."""

import json

import pytest

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.queues import services as queues
from hekla.lib import clock
from hekla.simulation import federation

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


@pytest.fixture
def second_cluster(world, monkeypatch):
    monkeypatch.setattr(federation, "PATIENCE_SECONDS", 120.0)
    world.alice.platform_role = "operator"
    world.alice.save()
    now = clock.now()
    cluster = clusters.create(name="away", kind="simulated", config={"nodes": []}, actor=PLATFORM, now=now)
    queues.create(cluster=cluster, name="far", actor=PLATFORM, now=now)


@pytest.mark.usefixtures("second_cluster")
def test_federated_queue_is_created_used_and_deleted(console, manifest):
    assert "No federated queues" in console("federated-queue", "list").output
    result = console(
        "federated-queue", "set", "both", "--queue", "default", "--queue", "far", "--description", "anywhere"
    )
    assert result.output == "both: far on away, default on simulated.\n"
    assert "at least two clusters" in console("federated-queue", "set", "both", "--queue", "far").output
    assert "anywhere" in console("federated-queue", "list").output
    output = console("job", "preview", manifest("talk"), "--queue", "both").output
    assert "simulated (default): Would start now." in output
    assert "Submitted talk" in console("job", "submit", manifest("talk"), "--queue", "both").output
    output = console("job", "show", "talk").output
    assert "Sent by both" in output
    assert "simulated: Would start now." in output
    assert json.loads(console("job", "show", "talk", "--json").output)["placement"]["federated_queue"] == "both"
    assert "both is deleted." in console("federated-queue", "delete", "both").output
