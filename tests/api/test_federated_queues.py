"""Federated queues over REST and on pages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient
from tests.api.conftest import World, job, make_world

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import NodeFacts
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import FederatedQueue
from hekla.lib import clock
from hekla.simulation import federation, snapshot_cache

FEDERATED_QUEUES = "/api/v1/federated-queues"
BOTH = {"name": "both", "members": ["default", "far"]}


@pytest.fixture
def two_clusters(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """Another cluster, twice as large, with the queue `far`."""
    settings.HEKLA_HOME, world = tmp_path, make_world()
    monkeypatch.setattr(federation, "PATIENCE_SECONDS", 120.0)
    snapshot_cache.forget_all()
    now, size = clock.now(), {"cpu": "8", "memory": "8Gi", "pods": "20"}
    made = clusters.create(name="away", kind="simulated", config={"nodes": []}, actor=PLATFORM, now=now)
    clusters.observe_nodes(made, [NodeFacts("m", size, {})], now=now)
    queues.create(cluster=made, name="far", actor=PLATFORM, now=now)
    yield world
    snapshot_cache.forget_all()


def post(client: APIClient, document: dict[str, Any], path: str = FEDERATED_QUEUES) -> Any:
    return client.post(path, document, format="json")


def test_operators_create_change_and_delete_a_federated_queue(two_clusters: World) -> None:
    root, alice = two_clusters.as_("root"), two_clusters.as_("alice")
    assert post(alice, BOTH).status_code == 403
    made = post(root, BOTH).json()
    assert [(one["queue"], one["cluster"]) for one in made["queues"]] == [("far", "away"), ("default", "sim")]
    assert alice.get(f"{FEDERATED_QUEUES}/both").json()["tenants"] is None
    changed = root.patch(f"{FEDERATED_QUEUES}/both", {"tenants": ["other"]}, format="json").json()
    assert (changed["tenants"], len(changed["members"])) == (["other"], 2)
    assert alice.get(FEDERATED_QUEUES).json() == []
    assert alice.get(f"{FEDERATED_QUEUES}/both").status_code == 404
    assert root.delete(f"{FEDERATED_QUEUES}/both").status_code == 204
    assert root.get(FEDERATED_QUEUES).json() == []


@pytest.mark.parametrize(
    ("fields", "status", "path"),
    [
        ({"name": "default"}, 409, "name"),
        ({"name": "new"}, 400, "name"),
        ({"members": ["default"]}, 400, "members"),
        ({"members": ["default", "theirs"]}, 400, "members"),
        ({"members": ["default", "nowhere"]}, 400, "members"),
        ({"colour": "red"}, 400, "colour"),
    ],
)
def test_invalid_members_are_reported_at_their_field(
    two_clusters: World, fields: dict[str, Any], status: int, path: str
):
    answer = post(two_clusters.as_("root"), BOTH | fields)
    assert answer.status_code == status
    assert path in {error["path"].partition(".")[0] for error in answer.json()["errors"]}


def test_queue_cannot_have_the_name_of_a_federated_queue(two_clusters: World) -> None:
    root = two_clusters.as_("root")
    post(root, BOTH)
    assert post(root, {"name": "both", "cluster": "sim"}, "/api/v1/queues").status_code == 409


def test_job_describes_its_placement(two_clusters: World) -> None:
    post(two_clusters.as_("root"), BOTH)
    alice = two_clusters.as_("alice")
    large = job()
    large["tasks"][0]["resources"] = {"cpu": "6"}
    fields = {**large, "queue": "both"}
    preview = post(alice, fields, "/api/v1/what-if").json()
    assert (preview["cluster"], preview["verdict"]) == ("away", "now")
    assert [(one["cluster"], one["chance"]) for one in preview["candidates"]] == [("away", "now"), ("sim", "never")]
    body = post(alice, fields, "/api/v1/jobs").json()["job"]
    assert (body["queue"], body["cluster"], body["spec"]["queue"]) == ("far", "away", "both")
    placement = body["placement"]
    assert (placement["federated_queue"], placement["moves"]) == ("both", 0)
    assert placement["candidates"][0]["sentence"] == "Would start now."
    assert "cannot start there" in placement["candidates"][1]["sentence"]
    again = client_of(two_clusters.people["alice"])
    page = again.get(reverse("jobs:detail", args=[body["uid"]])).content.decode()
    assert "both assigned the job to away." in page
    assert "both assigned the job to queue far of cluster away." in page
    assert post(alice, job("small"), "/api/v1/jobs").json()["job"]["placement"] is None


def test_same_idempotency_key_returns_the_same_job(two_clusters: World) -> None:
    post(two_clusters.as_("root"), BOTH)
    alice, fields = two_clusters.as_("alice"), {**job(), "queue": "both"}
    found = [
        alice.post("/api/v1/jobs", fields, format="json", headers={"Idempotency-Key": "k"}).json()["job"]
        for _attempt in range(2)
    ]
    assert found[0]["uid"] == found[1]["uid"]


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_pages_manage_federated_queues_and_the_job_form_offers_them(two_clusters: World) -> None:
    root, alice = client_of(two_clusters.people["root"]), client_of(two_clusters.people["alice"])
    ids = [queue.pk for queue in (two_clusters.queue, *two_clusters.queue.__class__.objects.filter(name="far"))]
    refused = root.post(reverse("federated_queues:create"), {"name": "both", "members": ids[:1]})
    assert "at least two clusters" in refused.content.decode()
    assert root.post(reverse("federated_queues:create"), {"name": "both", "members": ids}).status_code == 302
    assert "both" in alice.get(reverse("federated_queues:list")).content.decode()
    assert "away" in alice.get(reverse("federated_queues:detail", args=["both"])).content.decode()
    assert "both (the cluster that starts it first)" in alice.get(reverse("jobs:submit")).content.decode()
    form_data = {"description": "Wherever there is room", "members": ids}
    assert root.post(reverse("federated_queues:edit", args=["both"]), form_data).status_code == 302
    assert FederatedQueue.objects.get().description == "Wherever there is room"
    text = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: sent}
spec:
  queue: both
  tasks:
    - {name: main, template: {spec: {containers: [{name: m, command: ["true"], resources: {requests: {cpu: 6}}}]}}}
"""
    preview = alice.post(reverse("jobs_what_if"), {"text": text}).content.decode()
    assert "Would start now." in preview
    assert "cannot start there" in preview
    assert root.post(reverse("federated_queues:delete", args=["both"])).status_code == 302
    assert not FederatedQueue.objects.exists()
