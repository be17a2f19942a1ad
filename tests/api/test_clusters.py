"""Clusters over REST: the same checks as on the pages, and no answer contains the credentials."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient
from tests.api.conftest import World
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps.clusters.models import Cluster, ClusterHealth, StoredClusterKey
from hekla.apps.event_log.models import LoggedEvent
from hekla.controller.backends import backend_of

CLUSTERS = "/api/v1/clusters"
NODES = {"nodes": [{"name": "gpu", "count": 2, "allocatable": {"cpu": "64"}}]}
SECRET = "token-that-nobody-is-shown"
KUBECONFIG = """\
apiVersion: v1
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: token-that-nobody-is-shown}}]
"""
UNREACHABLE = {"name": "far", "kind": "kubernetes", "kubeconfig": KUBECONFIG}


@pytest.fixture(autouse=True)
def close_backends(world: World) -> Iterator[None]:
    yield
    for cluster in Cluster.objects.filter(kind="kubernetes"):
        backend_of(cluster).close()


@pytest.fixture
def operator(world: World) -> APIClient:
    world.people["bob"].platform_role = "operator"
    world.people["bob"].save()
    return world.as_("bob")


def post(client: APIClient, document: dict[str, Any], path: str = CLUSTERS) -> Any:
    return client.post(path, document, format="json")


def test_cluster_is_added_listed_paused_and_removed(operator: APIClient, alice: APIClient) -> None:
    fields = {"name": "lab", "kind": "simulated", "config": NODES}
    assert post(alice, fields).status_code == 403
    made = post(operator, fields)
    assert made.status_code == 201, made.json()
    assert (made.json()["config"], made.json()["key"], made.json()["health"]) == (NODES, None, None)
    assert [one["name"] for one in alice.get(CLUSTERS).json()] == ["sim", "lab"]
    assert "config" not in alice.get(CLUSTERS).json()[1]
    assert alice.get(f"{CLUSTERS}/lab").status_code == 403
    paused = operator.patch(f"{CLUSTERS}/lab", {"is_paused": True}, format="json").json()
    assert (paused["is_paused"], paused["config"]) == (True, NODES)
    assert operator.delete(f"{CLUSTERS}/lab").status_code == 204
    assert operator.get(f"{CLUSTERS}/lab").status_code == 404
    assert LoggedEvent.objects.filter(kind="ClusterRemoved").get().actor_name == "bob"


@pytest.mark.parametrize("is_paused", [True, False])
def test_cluster_can_be_added_while_paused(operator: APIClient, is_paused: bool) -> None:
    added = post(operator, {"name": "lab", "kind": "simulated", "config": NODES, "is_paused": is_paused})
    assert (added.status_code, added.json()["is_paused"]) == (201, is_paused)
    changes = LoggedEvent.objects.filter(kind="ClusterChanged").values_list("payload", flat=True)
    assert ["is_paused" in change["changes"] for change in changes] == [True] * is_paused


def test_a_cluster_with_queues_is_not_removed(operator: APIClient) -> None:
    answer = operator.delete(f"{CLUSTERS}/sim")
    assert answer.status_code == 409
    assert "has queues or jobs" in answer.json()["detail"]
    assert operator.get(f"{CLUSTERS}/sim").status_code == 200
    assert not LoggedEvent.objects.filter(kind="ClusterRemoved").exists()


@pytest.mark.parametrize(
    ("fields", "status", "path"),
    [
        ({"name": "A b"}, 400, "name"),
        ({"name": "nodes"}, 400, "name"),
        ({"name": "sim"}, 409, "name"),
        ({"kind": "slurm"}, 400, "kind"),
        ({"config": {"nodes": 3}}, 400, "config"),
        ({"config": ["a"]}, 400, "config"),
        ({"colour": "red"}, 400, "colour"),
        ({"token": SECRET}, 400, "token"),
        ({"kind": "kubernetes", "config": {}, "kubeconfig": f"{SECRET}: ["}, 400, "kubeconfig"),
        ({"kind": "kubernetes", "config": {}, "kubeconfig": KUBECONFIG, "token": SECRET}, 400, "token"),
        ({"kind": "kubernetes", "config": {}, "server": "http://far", "token": SECRET}, 400, "server"),
        ({"kind": "kubernetes", "config": {}, "server": "https://far", "token": ""}, 400, "token"),
        ({"kind": "kubernetes", "config": {"kubeconfig": "a"}, "kubeconfig": KUBECONFIG}, 400, "config"),
        ({"kind": "kubernetes", "config": {}, "kubeconfig": KUBECONFIG}, 400, "kubeconfig"),  # nothing listens there
    ],
)
def test_invalid_values_are_reported_at_their_field(operator: APIClient, fields, status: int, path: str) -> None:
    answer = post(operator, {"name": "lab", "kind": "simulated", "config": NODES, **fields})
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert path in {error["path"].partition(".")[0] for error in answer.json()["errors"]}
    assert SECRET not in answer.content.decode()
    assert Cluster.objects.count() == 1


def test_unreachable_cluster_is_saved_with_anyway(operator: APIClient) -> None:
    made = post(operator, {**UNREACHABLE, "anyway": True})
    assert made.status_code == 201
    body = made.json()
    assert (body["key"]["server"], body["key"]["added_by"]) == ("https://127.0.0.1:1", "bob")
    assert (body["health"]["is_reachable"], body["health"]["problem"]) == (False, "silent")
    assert "does not answer" in body["health"]["sentence"]
    tried = post(operator, {}, f"{CLUSTERS}/far/try").json()
    assert (tried["is_whole"], tried["problem"]) == (False, "silent")
    assert SECRET not in made.content.decode() + operator.get(f"{CLUSTERS}/far").content.decode()
    assert operator.patch(f"{CLUSTERS}/far", {"is_paused": True}, format="json").json()["is_paused"] is True
    assert operator.delete(f"{CLUSTERS}/far/key").status_code == 204
    assert operator.get(f"{CLUSTERS}/far").json()["key"] is None


def test_connection_check_saves_nothing(operator: APIClient) -> None:
    tried = post(operator, UNREACHABLE, f"{CLUSTERS}?dry_run=1")
    assert (tried.status_code, tried.json()["problem"]) == (200, "silent")
    post(operator, {"name": "lab", "kind": "simulated", "config": NODES})
    assert post(operator, {"config": {"nodes": []}}, f"{CLUSTERS}/lab/try").json()["is_whole"] is True
    assert operator.get(f"{CLUSTERS}/lab").json()["config"] == NODES
    assert Cluster.objects.count() == 2


def test_sent_kubeconfig_works_and_is_never_revealed(
    operator: APIClient, small_cluster: ControlPlane, granted_namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = small_cluster.user_token
    text = yaml.safe_dump(small_cluster.kubeconfig(token))
    made = post(operator, {**UNREACHABLE, "kubeconfig": text, "config": {"namespace": granted_namespace}})
    assert made.status_code == 201, made.json()
    assert made.json()["health"]["is_reachable"]
    assert backend_of(Cluster.objects.get(name="far")).nodes()
    other = {"server": small_cluster.url, "authority": small_cluster.ca.read_text(), "token": token}
    changed = operator.patch(f"{CLUSTERS}/far", other, format="json")
    assert (changed.status_code, StoredClusterKey.objects.get().server) == (200, small_cluster.url)
    before = ClusterHealth.objects.get().checked_at
    tried = post(operator, {}, f"{CLUSTERS}/far/try")
    assert (tried.json()["is_whole"], tried.json()["has_namespace"]) == (True, True)
    assert ClusterHealth.objects.get().checked_at > before
    texts = [answer.content.decode() for answer in (made, changed, tried, operator.get(f"{CLUSTERS}/far"))]
    assert all(
        token not in text for text in (*texts, caplog.text, str(list(LoggedEvent.objects.values_list("payload"))))
    )
