"""Queues over clusters from the command line."""

import json

import pytest

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.queues import services as queues
from hekla.lib import clock
from hekla.simulation import federation

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


@pytest.fixture
def second(world, monkeypatch):
    monkeypatch.setattr(federation, "PATIENCE_SECONDS", 120.0)
    world.alice.platform_role = "operator"
    world.alice.save()
    now = clock.now()
    made = clusters.create(name="away", kind="simulated", config={"nodes": []}, actor=PLATFORM, now=now)
    queues.create(cluster=made, name="far", actor=PLATFORM, now=now)


@pytest.mark.usefixtures("second")
def test_one_is_made_submitted_to_and_deleted(console, manifest):
    assert "No federated queues" in console("federated-queue", "list").output
    made = console(
        "federated-queue", "set", "both", "--queue", "default", "--queue", "far", "--description", "anywhere"
    )
    assert made.output == "both: far on away, default on simulated.\n"
    assert "at least two clusters" in console("federated-queue", "set", "both", "--queue", "far").output
    assert "anywhere" in console("federated-queue", "list").output
    told = console("job", "preview", manifest("talk"), "--queue", "both").output
    assert "simulated (default): Would start now." in told
    assert "Submitted talk" in console("job", "submit", manifest("talk"), "--queue", "both").output
    shown = console("job", "show", "talk").output
    assert "Sent by both" in shown
    assert "simulated: Would start now." in shown
    assert json.loads(console("job", "show", "talk", "--json").output)["placement"]["span"] == "both"
    assert "both is deleted." in console("federated-queue", "delete", "both").output
