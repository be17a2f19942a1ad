"""The cluster form: backend configuration errors are at their field and keep the input."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
NODES = {"nodes": [{"name": "gpu", "count": 4, "allocatable": {"cpu": "64"}}]}
KUBECONFIG = """\
apiVersion: v1
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: USER}]
"""


@pytest.fixture(autouse=True)
def kubeconfigs(settings, tmp_path: Path) -> Path:
    """Kubeconfigs in the data folder: with a token, with a sign-in program, over plain HTTP, and invalid."""
    settings.HEKLA_HOME = tmp_path
    folder = tmp_path / "kubeconfigs"
    folder.mkdir()
    (folder / "token").write_text(KUBECONFIG.replace("USER", "{token: very-secret}"))
    (folder / "program").write_text(KUBECONFIG.replace("USER", "{exec: {command: touch}}"))
    (folder / "plain").write_text(KUBECONFIG.replace("USER", "{token: very-secret}").replace("https", "http"))
    (folder / "odd").write_text("very-secret: [")
    return folder


REFUSED = [
    ("simulated", {"nodes": 3}, "nodes"),
    ("local", {"colour": "red"}, "colour"),
    ("kubernetes", {}, "This console does not run in a cluster. Enter a kubeconfig."),
    ("kubernetes", {"kubeconfig": "../secret-key"}, "kubeconfig"),
    ("kubernetes", {"kubeconfig": "absent"}, "Cannot read the kubeconfig absent: No such file or directory."),
    ("kubernetes", {"kubeconfig": "odd"}, "The file odd: Invalid kubeconfig."),
    ("kubernetes", {"kubeconfig": "program"}, "The sign-in program returned no credentials."),
    ("kubernetes", {"kubeconfig": "plain"}, "must begin with https"),
    ("kubernetes", {"kubeconfig": "token"}, "The API server does not answer"),
    ("kubernetes", {"kubeconfig": "token", "namespace": "Not A Name"}, "namespace"),
]


@pytest.mark.parametrize(("kind", "config", "sentence"), REFUSED)
def test_configuration_error_is_at_its_field(people: People, as_: As, kind, config, sentence) -> None:
    form_data = {"name": "fleet", "kind": kind, "config": json.dumps(config)}
    answer = as_(people.ada).post(reverse("clusters:create"), form_data)
    assert answer.status_code == 200
    (field_errors,) = answer.context["form"].errors.values()
    assert list(answer.context["form"].errors) == ["config"]
    assert sentence in str(field_errors)
    assert answer.context["form"]["name"].value() == "fleet"
    assert "very-secret" not in answer.content.decode()
    assert not Cluster.objects.filter(name="fleet").exists()


def test_working_cluster_is_added(people: People, as_: As) -> None:
    form_data = {"name": "fleet", "kind": "simulated", "config": json.dumps(NODES)}
    assert as_(people.ada).post(reverse("clusters:create"), form_data).status_code == 302
    assert Cluster.objects.get(name="fleet").config == NODES


def test_cluster_is_added_with_fields_and_without_a_script(people: People, as_: As) -> None:
    client, address = as_(people.ada), reverse("clusters:create")
    first = client.get(address)
    assert "settings-" not in first.content.decode()
    chosen = client.post(address, {"name": "fleet", "kind": "simulated", "more": "kind"})
    assert not Cluster.objects.filter(name="fleet").exists()
    page = chosen.content.decode()
    assert 'value="fleet"' in page
    entered = {"name": "fleet", "kind": "simulated", "config": "{}", "config_base": "{}", "config_kind": "simulated"}
    assert chosen.context["form"]["config"].value() == chosen.context["settings"].base == "{}"
    entered |= {"settings-nodes-0-name": "gpu", "settings-nodes-0-cards-0-count": "8", "settings-internet": ""}
    refused = client.post(address, entered)
    assert list(refused.context["settings"].form.errors) == ["nodes-0-allocatable"]
    assert not refused.context["form"].errors
    more = client.post(address, {**entered, "more": "nodes"})
    assert "settings-nodes-1-name" in more.content.decode()
    assert not more.context["settings"].form.errors
    assert client.post(address, {**entered, "settings-nodes-0-allocatable": "cpu=64"}).status_code == 302
    node = {"name": "gpu", "allocatable": {"cpu": "64"}, "cards": [{"count": 8}]}
    assert Cluster.objects.get(name="fleet").config == {"nodes": [node]}
    other = client.post(address, {**entered, "name": "far", "kind": "kubernetes"})
    assert "settings-namespaces" in other.content.decode(), "the fields of the new kind come first"
    assert not Cluster.objects.filter(name="far").exists()


def test_unreachable_cluster_can_be_paused(people: People, as_: As) -> None:
    cluster = Cluster.objects.create(
        name="away", kind="kubernetes", config={"kubeconfig": "token"}, created_at=people.cluster.created_at
    )
    form_data = {"config": json.dumps(cluster.config), "is_paused": "on"}
    assert as_(people.ada).post(reverse("clusters:edit", args=["away"]), form_data).status_code == 302
    cluster.refresh_from_db()
    assert cluster.is_paused
    form_data = {"config": json.dumps({"kubeconfig": "absent"})}
    answer = as_(people.ada).post(reverse("clusters:edit", args=["away"]), form_data)
    assert list(answer.context["form"].errors) == ["config"]
    cluster.refresh_from_db()
    assert cluster.is_paused
    assert cluster.config == {"kubeconfig": "token"}


def test_only_clusters_without_queues_are_removed(people: People, as_: As) -> None:
    client, now = as_(people.ada), people.cluster.created_at
    Cluster.objects.create(name="spare", kind="simulated", config={"nodes": []}, created_at=now)
    assert "Remove this cluster?" in client.get(reverse("clusters:detail", args=["spare"])).content.decode()
    assert client.post(reverse("clusters:remove", args=["spare"])).status_code == 302
    assert not Cluster.objects.filter(name="spare").exists()
    refused = client.post(reverse("clusters:remove", args=[people.cluster.name]), follow=True)
    assert "has queues or jobs" in refused.content.decode()
    assert Cluster.objects.count() == 1


def test_page_describes_external_pods_and_missing_tenants(people: People, as_: As) -> None:
    external_pods = {"namespaces": {"team-a": "nobody"}, "owner": people.ada.username}
    Cluster.objects.create(
        name="shared", kind="kubernetes", config={"external_pods": external_pods}, created_at=clock.now()
    )
    text = as_(people.ada).get(reverse("clusters:detail", args=["shared"])).content.decode()
    assert "External pods" in text
    assert "Hekla has no tenant “nobody”" in text
