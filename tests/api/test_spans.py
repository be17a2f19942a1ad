"""Queues over clusters over REST."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient
from tests.api.conftest import World, job, world

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import NodeFacts
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import FederatedQueue
from hekla.lib import clock
from hekla.simulation import federation, snapshot_cache

__all__ = ["world"]
SPANS = "/api/v1/federated-queues"
BOTH = {"name": "both", "members": ["default", "far"]}


@pytest.fixture
def second(transactional_db: None, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Another cluster, twice as large, with the queue `far`."""
    monkeypatch.setattr(federation, "PATIENCE_SECONDS", 120.0)
    snapshot_cache.forget_all()
    now, size = clock.now(), {"cpu": "8", "memory": "8Gi", "pods": "20"}
    made = clusters.create(name="away", kind="simulated", config={"nodes": []}, actor=PLATFORM, now=now)
    clusters.observe_nodes(made, [NodeFacts("m", size, {})], now=now)
    queues.create(cluster=made, name="far", actor=PLATFORM, now=now)
    yield world
    snapshot_cache.forget_all()


def post(client: APIClient, document: dict[str, Any], path: str = SPANS) -> Any:
    return client.post(path, document, format="json")


def test_operators_make_change_and_delete_one(second: World) -> None:
    root, alice = second.as_("root"), second.as_("alice")
    assert post(alice, BOTH).status_code == 403
    made = post(root, BOTH).json()
    assert [(one["queue"], one["cluster"]) for one in made["queues"]] == [("far", "away"), ("default", "sim")]
    assert alice.get(f"{SPANS}/both").json()["tenants"] is None
    changed = root.patch(f"{SPANS}/both", {"tenants": ["other"]}, format="json").json()
    assert (changed["tenants"], len(changed["members"])) == (["other"], 2)
    assert alice.get(SPANS).json() == []
    assert alice.get(f"{SPANS}/both").status_code == 404
    assert root.delete(f"{SPANS}/both").status_code == 204
    assert root.get(SPANS).json() == []


@pytest.mark.parametrize(
    ("wish", "status", "path"),
    [
        ({"name": "default"}, 409, "name"),
        ({"name": "new"}, 400, "name"),
        ({"members": ["default"]}, 400, "members"),
        ({"members": ["default", "theirs"]}, 400, "members"),
        ({"members": ["default", "nowhere"]}, 400, "members"),
        ({"colour": "red"}, 400, "colour"),
    ],
)
def test_what_does_not_go_together_is_told_at_its_field(second: World, wish: dict[str, Any], status: int, path: str):
    answer = post(second.as_("root"), BOTH | wish)
    assert answer.status_code == status
    assert path in {error["path"].partition(".")[0] for error in answer.json()["errors"]}


def test_a_queue_takes_no_name_of_several(second: World) -> None:
    root = second.as_("root")
    post(root, BOTH)
    assert post(root, {"name": "both", "cluster": "sim"}, "/api/v1/queues").status_code == 409


def test_a_job_says_where_it_went_and_why(second: World) -> None:
    post(second.as_("root"), BOTH)
    alice = second.as_("alice")
    large = job()
    large["tasks"][0]["resources"] = {"cpu": "6"}
    wish = {**large, "queue": "both"}
    foretold = post(alice, wish, "/api/v1/what-if").json()
    assert (foretold["cluster"], foretold["verdict"]) == ("away", "now")
    assert [(one["cluster"], one["chance"]) for one in foretold["candidates"]] == [("away", "now"), ("sim", "never")]
    told = post(alice, wish, "/api/v1/jobs").json()["job"]
    assert (told["queue"], told["cluster"], told["spec"]["queue"]) == ("far", "away", "both")
    placement = told["placement"]
    assert (placement["span"], placement["moves"]) == ("both", 0)
    assert placement["candidates"][0]["sentence"] == "Would start now."
    assert "cannot start there" in placement["candidates"][1]["sentence"]
    again = client_of(second.people["alice"])
    page = again.get(reverse("jobs:detail", args=[told["uid"]])).content.decode()
    assert "both assigned the job to away." in page
    assert "both assigned the job to queue far of cluster away." in page
    assert post(alice, job("small"), "/api/v1/jobs").json()["job"]["placement"] is None


def test_the_same_key_gives_the_same_job(second: World) -> None:
    post(second.as_("root"), BOTH)
    alice, wish = second.as_("alice"), {**job(), "queue": "both"}
    found = [
        alice.post("/api/v1/jobs", wish, format="json", headers={"Idempotency-Key": "k"}).json()["job"]
        for _time in range(2)
    ]
    assert found[0]["uid"] == found[1]["uid"]


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_pages_make_change_and_delete_one_and_the_form_of_a_job_offers_it(second: World) -> None:
    root, alice = client_of(second.people["root"]), client_of(second.people["alice"])
    ids = [queue.pk for queue in (second.queue, *second.queue.__class__.objects.filter(name="far"))]
    refused = root.post(reverse("federated_queues:create"), {"name": "both", "members": ids[:1]})
    assert "at least two clusters" in refused.content.decode()
    assert root.post(reverse("federated_queues:create"), {"name": "both", "members": ids}).status_code == 302
    assert "both" in alice.get(reverse("federated_queues:list")).content.decode()
    assert "away" in alice.get(reverse("federated_queues:detail", args=["both"])).content.decode()
    assert "both (the cluster that starts it first)" in alice.get(reverse("jobs:submit")).content.decode()
    typed = {"description": "Wherever there is room", "members": ids}
    assert root.post(reverse("federated_queues:edit", args=["both"]), typed).status_code == 302
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
    told = alice.post(reverse("jobs_what_if"), {"text": text}).content.decode()
    assert "Would start now." in told
    assert "cannot start there" in told
    assert root.post(reverse("federated_queues:delete", args=["both"])).status_code == 302
    assert not FederatedQueue.objects.exists()
