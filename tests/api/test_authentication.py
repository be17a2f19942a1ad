"""Authentication, rate limits, and problem documents for every refusal."""

from datetime import timedelta

import pytest
from django.test import Client
from rest_framework.test import APIClient

from hekla.apps.accounts import services as accounts
from hekla.lib import clock

ADDRESSES = [
    "me",
    "tokens",
    "tenants",
    "jobs",
    "flows",
    "templates",
    "queues",
    "clusters",
    "nodes",
    "environments",
    "schema",
    "nowhere",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_anonymous_requests_return_401(world, address):
    answer = APIClient().get(f"/api/v1/{address}")
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert (answer["Content-Type"], answer.json()["code"]) == ("application/problem+json", "not_authenticated")


@pytest.mark.parametrize("secret", ["", "hk_wrong", "ä", "a b"])
def test_a_wrong_token_is_refused(world, secret):
    answer = APIClient(HTTP_AUTHORIZATION=f"Bearer {secret}").get("/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "authentication_failed")


def test_an_expired_token_is_refused(world):
    long_ago = clock.now() - timedelta(days=2)
    secret = accounts.create_token(world.people["alice"], name="old", lifetime=timedelta(days=1), now=long_ago)
    assert APIClient(HTTP_AUTHORIZATION=f"Bearer {secret}").get("/api/v1/me").status_code == 401


def test_me_names_the_owner_of_the_token(alice):
    me = alice.get("/api/v1/me").json()
    assert (me["username"], [tenant["slug"] for tenant in me["tenants"]]) == ("alice", ["lab"])


def test_tokens_are_created_listed_and_revoked(alice, bob):
    made = alice.post("/api/v1/tokens", {"name": "laptop", "days": 2}, format="json")
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {made.json()['token']}")
    assert (made.status_code, client.get("/api/v1/me").json()["username"]) == (201, "alice")
    listed = next(token for token in alice.get("/api/v1/tokens").json() if token["name"] == "laptop")
    assert made.json()["token"].startswith(listed["prefix"])
    assert "digest" not in listed
    assert bob.delete(f"/api/v1/tokens/{listed['id']}").status_code == 404
    assert alice.delete(f"/api/v1/tokens/{listed['id']}").status_code == 204
    assert client.get("/api/v1/me").status_code == 401


@pytest.mark.parametrize("fields", [{}, {"name": ""}, {"name": "x", "days": 999}, {"name": "x", "forever": True}])
def test_invalid_token_requests_are_refused(alice, fields):
    assert alice.post("/api/v1/tokens", fields, format="json").status_code == 400


def test_a_browser_session_needs_its_csrf_token(world, a_job):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(world.people["alice"], backend="django.contrib.auth.backends.ModelBackend")
    assert browser.get("/api/v1/me").json()["username"] == "alice"
    answer = browser.post("/api/v1/jobs", a_job, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


def test_requests_are_throttled(alice, settings):
    settings.API_REQUESTS_A_MINUTE = 2
    answers = [alice.get("/api/v1/me") for _ in range(5)]
    late = answers[-1]
    assert (late.status_code, late.json()["code"]) == (429, "throttled")
    assert 0 < int(late["Retry-After"]) <= 60


@pytest.mark.parametrize("address", ["/api/v1/nowhere", "/api/v2/jobs", "/api/v1/jobs/no-uid", "/api/"])
def test_unknown_addresses_return_problem_json(alice, address):
    answer = alice.get(address)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


def test_wrong_method_lists_the_allowed_ones(alice):
    answer = alice.put("/api/v1/jobs", {}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert "POST" in answer["Allow"]
