"""Cluster credentials: entered on the page, stored encrypted, never revealed."""

import json
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import models
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import translation
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps.accounts.models import User
from hekla.apps.clusters import encryption, selectors, services
from hekla.apps.clusters.models import Cluster, ClusterHealth, StoredClusterKey
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Pod
from hekla.apps.queues import services as queues
from hekla.backends.kubernetes import keys
from hekla.controller import health
from hekla.controller.backends import backend_of
from hekla.domain.errors import NotFound
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.live import registry

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
SECRET = "token-that-nobody-is-shown"


@pytest.fixture(autouse=True)
def data_folder(db: None, settings, tmp_path) -> Iterator[None]:
    settings.HEKLA_HOME = tmp_path
    yield
    for cluster in Cluster.objects.filter(kind="kubernetes"):
        backend_of(cluster).close()


@pytest.fixture
def admin(people: People, as_: As) -> Client:
    return as_(people.ada)


def kubeconfig(plane: ControlPlane, token: str | None = None, **cluster: object) -> str:
    document = plane.kubeconfig(token or plane.user_token)
    document["clusters"][0]["cluster"].update(cluster)
    return yaml.safe_dump(document)


def send(client: Client, name: str = "far", *, to: str = "", **form_data: Any) -> HttpResponse:
    config = form_data.pop("config", {})
    fields = {"name": name, "kind": "kubernetes", "access": "kubeconfig", "config": json.dumps(config), **form_data}
    return client.post(to or reverse("clusters:create"), fields)


def errors(answer: HttpResponse) -> dict[str, list[str]]:
    assert answer.status_code == 200
    return dict(answer.context["form"].errors.get_json_data(escape_html=False))  # type: ignore[arg-type]


def database_content() -> str:
    """Every text, document and blob of the database."""
    kinds = (models.CharField, models.TextField, models.JSONField, models.BinaryField)
    found = []
    for model in apps.get_models():
        names = [field.name for field in model._meta.concrete_fields if isinstance(field, kinds)]
        found += [str([bytes(one) if isinstance(one, memoryview) else one for one in row]) for row in (
            model._default_manager.values_list(*names) if names else []
        )]  # fmt: skip
    return "\n".join(found)


def test_pasted_kubeconfig_works_and_is_never_revealed(
    people: People, admin: Client, as_: As, small_cluster: ControlPlane, granted_namespace: str, caplog
) -> None:
    caplog.set_level(logging.DEBUG)
    token = small_cluster.user_token
    form_data = {"secret_kubeconfig": kubeconfig(small_cluster), "config": {"namespace": granted_namespace}}
    assert send(admin, **form_data).status_code == 302
    cluster = Cluster.objects.get(name="far")
    assert backend_of(cluster).nodes()
    key = StoredClusterKey.objects.get()
    assert (key.server, key.holder, key.added_by) == (small_cluster.url, "test", people.ada)
    assert token in encryption.COLUMN.decrypt(key.ciphertext)
    health.look(cluster)
    pages = [reverse(name, args=["far"]) for name in ("clusters:detail", "clusters:edit")]
    pages += [reverse(name) for name in ("clusters:list", "audit", "api:v1:clusters", "api:v1:audit")]
    contents = [admin.get(page).content.decode() for page in pages]
    assert key.fingerprint in contents[0]
    assert "Reachable" in contents[0]
    assert "Cluster credentials added" in admin.get(reverse("audit"), {"kind": "ClusterKeyAdded"}).content.decode()
    for text in (*contents, database_content(), caplog.text):
        assert token not in text
    event = LoggedEvent.objects.get(kind="ClusterKeyAdded")
    assert (event.actor_name, event.payload["server"]) == ("ada", small_cluster.url)


def test_kubeconfig_is_accepted_as_a_file(admin: Client, small_cluster: ControlPlane, granted_namespace: str) -> None:
    file = SimpleUploadedFile("config", kubeconfig(small_cluster).encode())
    assert send(admin, secret_file=file, config={"namespace": granted_namespace}).status_code == 302
    assert backend_of(Cluster.objects.get(name="far")).nodes()
    for wrong in (b"\xff\xfe", b"x" * (64 * 1024 + 1)):
        answer = send(admin, "other", secret_file=SimpleUploadedFile("config", wrong))
        assert list(errors(answer)) == ["secret_file"]


def test_server_address_with_ca_and_token_works(
    admin: Client, small_cluster: ControlPlane, granted_namespace: str
) -> None:
    form_data: dict[str, Any] = {
        "access": "token",
        "config": {"namespace": granted_namespace},
        "server": small_cluster.url,
    }
    form_data |= {"authority": small_cluster.ca.read_text(), "token": small_cluster.user_token}
    assert send(admin, **form_data).status_code == 302
    assert backend_of(Cluster.objects.get(name="far")).nodes()


WRONG = [
    ({"secret_kubeconfig": ""}, "secret_kubeconfig", "Enter the credentials here."),
    ({"secret_kubeconfig": f"{SECRET}: ["}, "secret_kubeconfig", "Invalid kubeconfig"),
    ({"access": "token", "server": "http://far", "token": SECRET}, "server", "https"),
    ({"access": "token", "server": "https://far", "authority": "x", "token": SECRET}, "authority", "PEM"),
    ({"access": "token", "server": "https://far", "token": f"{SECRET} {SECRET}"}, "token", "Invalid token"),
    ({"access": "account"}, "config", "does not run in a cluster"),
    ({"access": "file"}, "config", "Name the file"),
    ({"access": "account", "config": {"kubeconfig": "a"}}, "config", "Remove it"),
    ({"secret_kubeconfig": "a", "config": {"kubeconfig": "a"}}, "config", "Remove it"),
    ({"config": ["a"]}, "config", "JSON object"),
]


@pytest.mark.parametrize(("form_data", "field", "sentence"), WRONG)
def test_errors_are_at_their_field_and_keep_the_input(
    admin: Client, monkeypatch, form_data: dict[str, Any], field: str, sentence: str
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    answer = send(admin, **form_data)
    found = errors(answer)
    assert list(found) == [field]
    assert sentence in str(found)
    page = answer.content.decode()
    assert SECRET not in page
    assert 'value="far"' in page
    assert form_data.get("server", "") in page
    assert not Cluster.objects.filter(name="far").exists()


def test_errors_are_translated(admin: Client, small_cluster: ControlPlane) -> None:
    text = kubeconfig(small_cluster, **{"proxy-url": "http://p"})
    admin.cookies["django_language"] = "zh-hans"
    assert "不支持" in str(errors(send(admin, secret_kubeconfig=text)))
    translation.activate("en")


def test_connection_check_saves_nothing_and_carries_the_key(
    people: People, admin: Client, as_: As, small_cluster: ControlPlane, granted_namespace: str
) -> None:
    form_data: dict[str, Any] = {"config": {"namespace": granted_namespace}}
    tried = send(admin, secret_kubeconfig=kubeconfig(small_cluster), **{"try": "yes"}, **form_data)
    page = tried.content.decode()
    assert "Reachable" in page
    assert small_cluster.user_token not in page
    assert not Cluster.objects.filter(name="far").exists()
    passthrough = tried.context["form"]["secret_carried"].value()
    assert list(errors(send(admin, secret_carried=passthrough[5:], **form_data))) == ["secret_kubeconfig"]
    assert list(errors(send(admin, access="token", server=small_cluster.url, secret_carried=passthrough))) == ["token"]
    assert send(admin, secret_carried=passthrough, **form_data).status_code == 302
    assert backend_of(Cluster.objects.get(name="far")).nodes()


def test_passthrough_key_is_bound_to_user_and_expires() -> None:
    now = clock.now()
    text = encryption.encrypt_for_form(SECRET, by=1, now=now)
    assert SECRET not in text
    assert encryption.decrypt_from_form(text, by=1, now=now + timedelta(minutes=59)) == SECRET
    assert encryption.decrypt_from_form(text, by=2, now=now) is None
    assert encryption.decrypt_from_form(text, by=1, now=now + timedelta(minutes=61)) is None


def test_unreachable_cluster_is_saved_on_confirmation(admin: Client, small_cluster: ControlPlane) -> None:
    text = kubeconfig(small_cluster, SECRET, server="https://127.0.0.1:1")
    first = send(admin, secret_kubeconfig=text)
    assert "does not answer" in str(errors(first)["secret_kubeconfig"])
    passthrough = first.context["form"]["secret_carried"].value()
    assert send(admin, secret_carried=passthrough, anyway="yes").status_code == 302
    page = admin.get(reverse("clusters:detail", args=["far"])).content.decode()
    assert "Not reachable" in page
    assert "Not reachable" in admin.get(reverse("clusters:list")).content.decode()


def test_missing_permissions_are_listed_and_can_be_confirmed(
    admin: Client, small_cluster: ControlPlane, namespace: str
) -> None:
    form_data: dict[str, Any] = {"secret_kubeconfig": kubeconfig(small_cluster), "config": {"namespace": namespace}}
    answer = send(admin, **form_data)
    assert "setup is incomplete" in str(errors(answer))
    page = answer.content.decode()
    assert "pods/binding" in page
    assert f"in the namespace {namespace}" in page
    assert send(admin, anyway="yes", **form_data).status_code == 302
    assert "pods/binding" in admin.get(reverse("clusters:detail", args=["far"])).content.decode()


@pytest.fixture
def far(people: People, small_cluster: ControlPlane, granted_namespace: str) -> Cluster:
    """A cluster with credentials that do not work."""
    key = keys.from_token("https://127.0.0.1:1", "", SECRET)
    credentials = services.Key(key.encode(), key.server, "nobody")
    common: dict[str, Any] = {"actor": services.CONTROLLER, "now": clock.now()}
    config = {"namespace": granted_namespace}
    cluster = services.create(name="far", kind="kubernetes", config=config, **common)
    services.give_key(cluster, credentials, by=people.ada, **common)
    return cluster


def test_key_change_takes_effect_at_once(admin: Client, far: Cluster, small_cluster: ControlPlane, monkeypatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    before, edit = backend_of(far), reverse("clusters:edit", args=["far"])
    replaced = send(admin, to=edit, config=far.config, secret_kubeconfig=kubeconfig(small_cluster))
    assert replaced.status_code == 302
    after = backend_of(far)
    assert after is not before
    assert after.nodes()
    assert backend_of(far) is after, "the backend stays open"
    assert StoredClusterKey.objects.count() == 1
    assert admin.post(reverse("clusters:remove_key", args=["far"])).status_code == 302
    assert selectors.backend_facts(far)["key"] is None
    kinds = ["ClusterKeyAdded", "ClusterKeyAdded", "ClusterKeyRemoved"]
    assert [event.kind for event in LoggedEvent.objects.filter(kind__startswith="ClusterKey").order_by("pk")] == kinds


def test_other_changes_keep_the_key(admin: Client, far: Cluster) -> None:
    edit = reverse("clusters:edit", args=["far"])
    page = admin.get(edit).content.decode()
    assert "https://127.0.0.1:1" in page
    assert SECRET not in page
    assert send(admin, to=edit, access="", config=far.config, is_paused="on").status_code == 302
    far.refresh_from_db()
    assert far.is_paused
    assert SECRET in encryption.COLUMN.decrypt(StoredClusterKey.objects.get().ciphertext)


def test_namespaces_cannot_change_while_pods_run(people: People, admin: Client, far: Cluster) -> None:
    pod = running_pod(people, far)
    edit, new_config = reverse("clusters:edit", args=["far"]), {**far.config, "namespaces": "tenant"}
    fields = {"to": edit, "access": "", "config": new_config, "anyway": ""}
    assert "are running" in errors(send(admin, **fields))["config"][0]["message"]
    far.refresh_from_db()
    assert far.config != new_config
    Pod.objects.filter(pk=pod.pk).update(phase="succeeded")
    assert send(admin, **fields).status_code == 302
    far.refresh_from_db()
    assert far.config == new_config
    answer = send(admin, to=edit, access="", config={**new_config, "namespaces": "shared"}, anyway="")
    assert "Cannot check" in errors(answer)["config"][0]["message"]


def running_pod(people: People, cluster: Cluster) -> Pod:
    queue = queues.create(cluster=cluster, name="far", actor=PLATFORM, now=clock.now())
    task = {"name": "main", "command": ["x"], "image": "python"}
    spec = JobSpec.parse({"name": "one", "queue": queue.name, "tasks": [task]})
    job = jobs.submit(spec=spec, tenant=people.lab, user=people.alice, now=clock.now())
    place = {"index": 0, "version": 1, "slot": 1, "address": "s1", "node": "n1"}
    return Pod.objects.create(job=job, task="main", attempt=1, phase="running", created_at=clock.now(), **place)


def test_change_of_access_method_deletes_the_key(
    admin: Client, far: Cluster, small_cluster: ControlPlane, tmp_path
) -> None:
    (tmp_path / "kubeconfigs").mkdir()
    (tmp_path / "kubeconfigs" / "mine").write_text(kubeconfig(small_cluster))
    config = {**far.config, "kubeconfig": "mine"}
    assert send(admin, to=reverse("clusters:edit", args=["far"]), access="file", config=config).status_code == 302
    assert not StoredClusterKey.objects.exists()
    far.refresh_from_db()
    assert backend_of(far).nodes()


def test_key_is_unreadable_after_secret_key_change(far: Cluster, settings) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", []
    assert selectors.backend_facts(far)["key"] == ""
    health.look(far)
    assert "Replace" in ClusterHealth.objects.get().detail


def test_health_change_is_one_event_and_stale_checks_are_dropped(far: Cluster) -> None:
    health.look(far)
    first = ClusterHealth.objects.get()
    health.look(far)
    again = ClusterHealth.objects.get()
    assert (first.problem, again.problem, again.since) == ("silent", "silent", first.since)
    assert again.checked_at > first.checked_at
    well = health.as_facts(health.Health(version="v1.33.0", has_namespace=True))
    services.observe_health(far, well, started_at=first.checked_at, now=clock.now())
    assert ClusterHealth.objects.get().problem == "silent"
    services.observe_health(far, well, started_at=clock.now(), now=clock.now())
    after = ClusterHealth.objects.get()
    assert (after.is_reachable, after.since > first.since) == (True, True)
    events = LoggedEvent.objects.filter(kind="ClusterHealthChanged").order_by("pk")
    assert [event.payload["reachable"] for event in events] == [False, True]


def test_rest_returns_cluster_health(admin: Client, far: Cluster) -> None:
    health.look(far)
    clusters = {one["name"]: one for one in admin.get(reverse("api:v1:clusters")).json()}
    assert clusters["sim"]["health"] is None
    assert (clusters["far"]["health"]["is_reachable"], clusters["far"]["health"]["problem"]) == (False, "silent")


def test_problems_of_hypernodes_are_shown_with_the_health(admin: Client, far: Cluster) -> None:
    found = health.Health(version="v1.33.0", has_namespace=True, topology_faults=("overlap rack-a", "later rack-b"))
    services.observe_health(far, health.as_facts(found), started_at=clock.now(), now=clock.now())
    page = admin.get(reverse("clusters:detail", args=["far"])).content.decode()
    assert "HyperNode objects with problems:" in page
    assert "rack-a" in page
    assert "One of its nodes is in another hypernode of the same tier too." in page
    assert "Hekla has all permissions that it needs." in page
    answer = admin.get(reverse("api:v1:cluster", args=["far"])).json()
    assert answer["health"]["topology_faults"] == ["overlap rack-a", "later rack-b"]


def test_only_cluster_managers_remove_a_key(people: People, as_: As, far: Cluster) -> None:
    assert as_(people.alice).post(reverse("clusters:remove_key", args=["far"])).status_code == 403
    assert StoredClusterKey.objects.exists()


def test_health_change_updates_open_pages_of_managers(people: People, far: Cluster) -> None:
    (cluster,), (cluster_list,) = registry.find("cluster"), registry.find("clusters")
    health.look(far)
    topics = set(LoggedEvent.objects.get(kind="ClusterHealthChanged").topics)
    for view, params in ((cluster, {"name": "far"}), (cluster_list, {})):
        assert topics & view.topics(people.ada, params)
        assert "Not reachable" in view.render(people.ada, params)
        with pytest.raises(NotFound):
            view.audience(people.alice, params)
