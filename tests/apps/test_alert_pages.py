"""The pages of alerts: the list, a rule with its history, the form with its preview, and the silence."""

from copy import deepcopy

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.access_world import HOOK, RULE_FORM
from tests.apps.conftest import make_people
from tests.support.shared_rows import rolled_back, undone_test

from hekla.apps.alerts import services
from hekla.apps.alerts.models import AlertRule
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import NodeFacts
from hekla.lib import clock

DOWN = {**RULE_FORM, "name": "node down", "cluster": "sim", "severity": "critical", "enabled": "on"}


@pytest.fixture(scope="module")
def shared_people(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), rolled_back():
        yield make_people()


@pytest.fixture
def people(shared_people):
    with undone_test():
        yield deepcopy(shared_people)


@pytest.fixture
def ada(people):
    return signed_in(people.ada)


def signed_in(user):
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def node(people, *, ready):
    size = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    clusters.observe_nodes(people.cluster, [NodeFacts("n1", size, {}, is_ready=ready)], now=clock.now())


def act():
    services.evaluate(now=clock.now())
    services.act_due(now=clock.now())


def page(client, view, *keys):
    response = client.get(reverse(view, args=keys))
    assert response.status_code == 200
    return response.content.decode()


def test_a_rule_is_previewed_created_and_shown_with_what_it_did(people, ada):
    assert "No alert rules" in page(ada, "alerts:list")
    node(people, ready=False)
    fields = {**DOWN, "notify_roles": ["owner"], "cordon": "on", "cordon_undo": "on"}
    preview = ada.post(reverse("alerts:create"), {**fields, "preview": "yes"}).content.decode()
    assert "1 value now, 1 beyond the threshold." in preview
    assert "The rule would have fired 1 time." in preview
    assert not AlertRule.objects.exists()
    assert ada.post(reverse("alerts:create"), fields).status_code == 302
    rule = AlertRule.objects.get()
    act()
    text = page(ada, "alerts:detail", rule.uid)
    assert "Node not ready (1: not ready): above 0" in text
    assert "Cordon the node (undone when it clears)" in text
    assert "beyond the threshold" in text
    listed = page(ada, "alerts:list")
    assert "n1 (sim)" in listed
    assert "firing" in listed
    edited = ada.post(reverse("alerts:edit", args=[rule.uid]), {**fields, "for_seconds": "5m"})
    assert edited.status_code == 302
    assert AlertRule.objects.get().spec["for_seconds"] == 300
    assert 'value="5m"' in page(ada, "alerts:edit", rule.uid)


def test_refusals_stand_at_their_fields_and_lose_nothing(ada):
    wrong = {**DOWN, "measure": "jobs_waiting", "cordon": "on", "webhook_url": "http://10.0.0.1/", "clear": "9"}
    text = ada.post(reverse("alerts:create"), {**wrong, "notify_people": "nobody"}).content.decode()
    assert "The alert would clear while it fires" in text
    text = ada.post(reverse("alerts:create"), {**wrong, "clear": "", "notify_people": "nobody"}).content.decode()
    assert "Unknown person “nobody”." in text
    assert "Only rules with a measure of nodes can cordon or label." in text
    assert "10.0.0.1 is not a public internet address" in text
    assert 'value="nobody"' in text


def test_the_secret_of_a_webhook_is_shown_once_and_its_address_only_to_editors(people, ada):
    made = ada.post(reverse("alerts:create_for", args=["lab"]), {**DOWN, "measure": "quota_used", "webhook_url": HOOK})
    assert "als_" in made.content.decode()
    rule = AlertRule.objects.get()
    for client in (ada, signed_in(people.bob)):
        text = page(client, "alerts:detail", rule.uid)
        assert "als_" not in text
        assert HOOK not in text
    assert HOOK in page(ada, "alerts:edit", rule.uid)
    assert "als_" in ada.post(reverse("alerts:renew_secret", args=[rule.uid])).content.decode()


def test_a_rule_is_silenced_turned_off_and_deleted(people, ada):
    ada.post(reverse("alerts:create"), DOWN)
    rule = AlertRule.objects.get()
    silence = reverse("alerts:silence", args=[rule.uid])
    assert "This field is required" in ada.post(silence, {"hours": "2", "reason": ""}).content.decode()
    ada.post(silence, {"hours": "2", "reason": "New switches."})
    assert "New switches." in page(ada, "alerts:detail", rule.uid)
    ada.post(silence, {"end": "yes"})
    assert "New switches." not in page(ada, "alerts:detail", rule.uid)
    ada.post(reverse("alerts:enable", args=[rule.uid]), {"enable": "no"})
    assert not AlertRule.objects.get().is_enabled
    assert ada.post(reverse("alerts:delete", args=[rule.uid])).status_code == 302
    assert not AlertRule.objects.exists()


def test_tenant_admins_have_the_form_of_their_tenant_and_others_learn_whom_to_ask(people):
    form = page(signed_in(people.alice), "alerts:create_for", "lab")
    assert "Age of the oldest pending job" in form
    assert "Node not ready" not in form
    assert "Cordon" not in form
    assert "Admins of your tenant can create rules." in page(signed_in(people.bob), "alerts:list")


def test_rest_has_the_same(people, ada):
    spec = {"name": "down", "measure": "node_not_ready", "threshold": 0, "cluster": "sim"}
    post = {"content_type": "application/json"}
    found = ada.post("/api/v1/alert-rules/preview", spec, **post).json()
    assert (found["count"], found["breaches"], found["past"]["is_possible"]) == (1, 0, True)
    made = ada.post("/api/v1/alert-rules", {**spec, "actions": [{"kind": "webhook", "url": HOOK}]}, **post)
    assert made.status_code == 201, made.content
    uid, secret = made.json()["rule"]["uid"], made.json()["webhook_secret"]
    assert secret.startswith("als_")
    changed = ada.patch(f"/api/v1/alert-rules/{uid}", {"actions": [], "severity": "critical"}, **post)
    assert changed.json()["rule"]["spec"]["severity"] == "critical"
    node(people, ready=False)
    act()
    [alert] = ada.get("/api/v1/alerts").json()["results"]
    assert (alert["rule"], alert["state"], alert["name"], alert["value"]) == ("down", "firing", "n1 (sim)", 1.0)
    history = ada.get(f"/api/v1/alert-rules/{uid}/history").json()
    assert [one["reason"] for one in history["changes"]] == ["breach"]
    silent = ada.post(f"/api/v1/alert-rules/{uid}/silence", {"hours": 1, "reason": "Later."}, **post)
    assert silent.json()["silence_reason"] == "Later."
    assert ada.delete(f"/api/v1/alert-rules/{uid}/silence").status_code == 204
    assert ada.post("/api/v1/alert-rules", {**spec, "threshold": "high"}, **post).status_code == 400
    assert ada.delete(f"/api/v1/alert-rules/{uid}").status_code == 204
