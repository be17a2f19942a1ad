"""Nodes on the command line."""

import json

import pytest
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import SIZE, World

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Pod
from hekla.domain.jobspec import JobSpec
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


def test_drain_is_previewed_shown_and_undone(world, console):
    world.alice.platform_role = "operator"
    world.alice.save()
    task = {"name": "main", "command": ["x"], "resources": {"cpu": "1"}, "env": {"HEKLA_SIM_SECONDS": "1000"}}
    spec = JobSpec.parse({"name": "one", "tasks": [task]})
    services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.backend_until(lambda: Pod.objects.filter(phase="running").exists())
    node = Node.objects.get()
    line = console("node", "drain", node.name, "--dry-run").output.splitlines()[1]
    assert line.split()[:4] == ["one", "alice", "lab", "1"]
    assert "Fits on no other node" in line
    refused = console("node", "drain", node.name)
    assert (refused.exit_code, "--reason" in refused.output) == (1, True)
    assert not Node.objects.get().is_cordoned
    done = console("node", "drain", node.name, "--cluster", "simulated", "--reason", "a new fan").output
    assert "Evicted: 1 pods of 1 jobs" in done
    client, page = Client(), reverse("clusters:drain", args=[node.pk])
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    world.backend_until(lambda: not Pod.objects.exclude(node="").exclude(phase="failed").exists())
    text = client.get(reverse("clusters:node", args=[node.pk])).content.decode()
    assert "a new fan" in text
    assert "No pod of Hekla is left" in text
    text = client.post(page, {"reason": ""}).content.decode()
    assert "Reason" in text
    assert client.post(page, {"reason": "the fan again"}).status_code == 302
    assert Node.objects.get().drain_reason == "the fan again"
    assert "accepts pods again" in console("node", "uncordon", node.name).output
    world.backend_until(lambda: Pod.objects.filter(phase="running").exists())
    assert "no such node" in console("node", "drain", "none", "--dry-run").output


def test_a_job_starts_on_the_node_that_gets_its_label(world, console):
    world.alice.platform_role = "operator"
    world.alice.save()
    task = {"name": "main", "command": ["x"], "node_selector": {"fast-disk": "yes"}, "resources": {"cpu": "1"}}
    services.submit(
        spec=JobSpec.parse({"name": "one", "tasks": [task]}), tenant=world.tenant, user=world.alice, now=clock.now()
    )
    world.backend_until(Node.objects.exists)
    assert not Pod.objects.exclude(node="").exists()
    node = Node.objects.get()
    client, page = Client(), reverse("clusters:labels", args=[node.pk])
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    wrong = client.post(page, {"label": "no name", "value": "-"}).content.decode()
    assert "not a valid label name" in wrong
    assert 'value="no name"' in wrong
    assert client.post(page, {"label": "slow", "value": ""}).status_code == 302
    assert "fast-disk yes here" in " ".join(console("node", "label", node.name, "fast-disk=yes").output.split())
    world.backend_until(lambda: Pod.objects.exclude(node="").exists())
    assert client.post(page, {"remove": "slow"}).status_code == 302
    assert "fast-disk" in client.get(page).content.decode()
    assert json.loads(console("node", "label", node.name, "--json").output)["set_labels"] == {"fast-disk": "yes"}
    assert "hekla.dev/x" in console("node", "label", node.name, "hekla.dev/x=1").output
    assert "fast-disk" not in console("node", "label", node.name, "fast-disk-").output


def test_system_status_is_printed(world, console):
    refused = console("system")
    assert refused.exit_code == 1
    world.alice.platform_role = "operator"
    world.alice.save()
    text = console("system").output
    for words in ("PostgreSQL", "Valkey", "READER OF THE EVENT LOG", "simulated", "event_log_loggedevent"):
        assert words in text
    assert json.loads(console("system", "--json").output)["controllers"][0]["cluster"] == "simulated"
