"""The token for the Prometheus of a cluster: stored encrypted, never shown, and bound to its address."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import Cluster, ClusterHealth, StoredMetricsToken
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.cluster_access import validation
from hekla.cluster_access.validation import ClusterDraft
from hekla.domain.errors import Refused
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]
CONFIG = {"prometheus": {"address": "http://prometheus:9090"}}


@pytest.fixture
def cluster(people: People) -> Cluster:
    return services.create(name="far", kind="kubernetes", config=CONFIG, actor=PLATFORM, now=clock.now())


@pytest.fixture
def client(people: People) -> Client:
    client = Client()
    client.force_login(people.ada, backend="django.contrib.auth.backends.ModelBackend")
    return client


def token_of(cluster: Cluster) -> str:
    cluster.refresh_from_db()
    return selectors.backend_facts(cluster)["metrics_token"]


def test_token_is_stored_and_never_shown(cluster: Cluster, client: Client) -> None:
    page = reverse("clusters:metrics_token", args=["far"])
    assert client.post(page, {"secret_token": "s3cret"}).status_code == 302
    assert token_of(cluster) == "s3cret"
    assert b"s3cret" not in bytes(StoredMetricsToken.objects.get().ciphertext)
    event = LoggedEvent.objects.filter(kind="ClusterChanged").last()
    assert event
    assert event.payload["changes"] == {"metrics_token": {"old": False, "new": True}}
    for address in (page, reverse("clusters:detail", args=["far"]), reverse("api:v1:cluster", args=["far"])):
        assert "s3cret" not in client.get(address).content.decode()
    rest = reverse("api:v1:cluster_metrics_token", args=["far"])
    document: dict[str, Any] = {"token": "other"}
    assert client.put(rest, document, content_type="application/json").status_code == 204
    assert token_of(cluster) == "other"
    assert client.delete(rest).status_code == 204
    assert token_of(cluster) == ""


def test_token_goes_with_its_address(cluster: Cluster) -> None:
    services.set_metrics_token(cluster, "s3cret", actor=PLATFORM, now=clock.now())
    same = {"prometheus": {**CONFIG["prometheus"], "node_label": "node"}}
    services.change(cluster, {"config": same}, actor=PLATFORM, now=clock.now())
    assert token_of(cluster) == "s3cret"
    other = {"prometheus": {"address": "http://elsewhere:9090"}}
    services.change(cluster, {"config": other}, actor=PLATFORM, now=clock.now())
    assert not StoredMetricsToken.objects.exists()


def test_token_is_not_tried_at_another_address(cluster: Cluster) -> None:
    services.set_metrics_token(cluster, "s3cret", actor=PLATFORM, now=clock.now())

    def token(**more: Any) -> str:
        config = {"prometheus": {**CONFIG["prometheus"], **more}}
        return validation._context(ClusterDraft(row={"config": config}, cluster=cluster)).metrics_token

    assert token(node_label="node") == "s3cret"
    assert token(address="http://elsewhere:9090") == ""


@pytest.mark.parametrize("token", ["with space", "lätin", "a\nb", "a" * 4097])
def test_token_that_cannot_be_sent_is_refused(cluster: Cluster, token: str) -> None:
    with pytest.raises(Refused, match="4,096"):
        services.set_metrics_token(cluster, token, actor=PLATFORM, now=clock.now())


def test_page_says_why_prometheus_is_not_used(cluster: Cluster, client: Client) -> None:
    now = clock.now()
    facts: dict[str, Any] = {"checked_at": now, "since": now, "has_namespace": True}
    ClusterHealth.objects.create(cluster=cluster, metrics_fault="Prometheus answers with 401", **facts)
    text = client.get(reverse("clusters:detail", args=["far"])).content.decode()
    assert "Prometheus answers with 401" in text
    assert "Check the address and the token" in text
