"""Nodes on the command line."""

import json

import pytest
from tests.controller.conftest import SIZE, World

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


ZONE = {"topology.kubernetes.io/zone": "north-1"}


@pytest.fixture
def tainted(world: World) -> None:
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}, {"key": "old", "effect": "NoExecute"}]
    config = {"nodes": [{"name": "n", "allocatable": SIZE, "taints": taints, "usage": {"cpu": "1"}, "labels": ZONE}]}
    clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())


def test_list_of_nodes_shows_zone_taints_and_usage(tainted, console):
    lines = console("node", "list").output.splitlines()
    head = ["NAME", "CLUSTER", "ZONE", "STATE", "CAPACITY", "ALLOCATED", "MEASURED", "TAINTS", "MESSAGE"]
    assert lines[0].split() == head
    assert lines[1].split()[3] == "north-1"
    assert "cpu 25%, memory 0%" in lines[1]
    assert "gpu=yes:NoSchedule, old:NoExecute" in lines[1]
    (node,) = json.loads(console("node", "list", "--json").output)
    assert (node["zone"], node["region"]) == ("north-1", "")
    assert node["taints"] == ["gpu=yes:NoSchedule", "old:NoExecute"]
