"""Scopes of API tokens, and the errors for a missing scope."""

from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import ApiToken
from hekla.apps.accounts.scopes import Scope
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.tenancy import services as tenancy
from hekla.lib import clock

TOKENS = "/api/v1/tokens"
A_QUEUE = {"name": "gpu", "cluster": "sim"}
PAI_JOB = {
    "jobName": "sent",
    "image": "i",
    "taskRoles": [{"name": "main", "command": "true", "cpuNumber": 1, "memoryMB": 64}],
}
REQUESTS = {
    Scope.READ: lambda client, job: client.get("/api/v1/jobs"),
    Scope.JOBS: lambda client, job: client.post("/api/v1/jobs?tenant=lab", job, format="json"),
    Scope.MANAGE: lambda client, job: client.post("/api/v1/queues", A_QUEUE, format="json"),
    Scope.ADMIN: lambda client, job: client.post(TOKENS, {"name": "more"}, format="json"),
}


def with_scopes(user, *scopes):
    secret = accounts.create_token(user, name="t", lifetime=timedelta(days=1), scopes=scopes, now=clock.now())
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


@pytest.fixture
def root_in_lab(world):
    tenancy.add_member(world.tenant, world.people["root"], "admin", actor=PLATFORM, now=clock.now())
    return world.people["root"]


@pytest.mark.parametrize(
    ("held", "may"),
    [
        ([Scope.READ], {Scope.READ}),
        ([Scope.JOBS], {Scope.READ, Scope.JOBS}),
        ([Scope.MANAGE], {Scope.READ, Scope.MANAGE}),
        ([Scope.READ, Scope.JOBS, Scope.MANAGE], {Scope.READ, Scope.JOBS, Scope.MANAGE}),
        ([Scope.ADMIN], set(Scope)),
    ],
)
def test_token_is_limited_to_its_scopes(root_in_lab, a_job, held, may):
    client = with_scopes(root_in_lab, *held)
    answers = {scope: request(client, a_job) for scope, request in REQUESTS.items()}
    assert {scope for scope, answer in answers.items() if answer.status_code < 300} == may
    refused = {scope: answer.json() for scope, answer in answers.items() if answer.status_code >= 300}
    assert all(
        answer["code"] == "missing_scope" and f"“{scope}”" in answer["detail"] for scope, answer in refused.items()
    )


def test_token_has_no_more_rights_than_its_owner(world):
    assert with_scopes(world.people["bob"], Scope.ADMIN).post("/api/v1/queues", A_QUEUE).status_code == 403


def test_openpai_api_needs_the_same_scopes(root_in_lab):
    jobs = "/rest-server/api/v2/jobs"
    refused = with_scopes(root_in_lab, Scope.READ).post(jobs, PAI_JOB, format="json")
    assert (refused.status_code, refused.json()["code"]) == (403, "ForbiddenUserError")
    assert "“jobs”" in refused.json()["message"]
    assert with_scopes(root_in_lab, Scope.READ).get(jobs).status_code == 200
    assert with_scopes(root_in_lab, Scope.JOBS).post(jobs, PAI_JOB, format="json").status_code == 202
    assert with_scopes(root_in_lab, Scope.READ).delete("/rest-server/api/v2/authn/basic/logout").status_code == 200


def test_default_scopes_are_read_and_jobs(root):
    assert root.post(TOKENS, {"name": "ci"}, format="json").status_code == 201
    answer = root.get(TOKENS).json()[0]
    assert (answer["name"], answer["scopes"], answer["last_used_at"]) == ("ci", ["read", "jobs"], None)
    assert LoggedEvent.objects.filter(kind="TokenCreated").last().payload["scopes"] == ["read", "jobs"]


@pytest.mark.parametrize("scopes", [[], ["everything"], "jobs"])
def test_unknown_or_missing_scopes_are_refused(root, scopes):
    answer = root.post(TOKENS, {"name": "ci", "scopes": scopes}, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["path"].partition(".")[0]) == (400, "scopes")


def test_me_lists_the_scopes_of_the_token(world):
    assert with_scopes(world.people["bob"], Scope.JOBS).get("/api/v1/me").json()["scopes"] == ["jobs"]
    session = APIClient()
    session.force_login(world.people["bob"], backend="django.contrib.auth.backends.ModelBackend")
    assert session.get("/api/v1/me").json()["scopes"] == []


def test_page_creates_and_lists_tokens_with_scopes(world, client):
    client.force_login(world.people["bob"], backend="django.contrib.auth.backends.ModelBackend")
    nothing = client.post("/accounts/me/tokens/", {"name": "ci", "days": "3"})
    assert not ApiToken.objects.filter(user=world.people["bob"]).exists()
    assert "This field is required" in nothing.content.decode()
    page = client.post("/accounts/me/tokens/", {"name": "ci", "days": "3", "scopes": ["read"]}).content.decode()
    assert ApiToken.objects.get(user=world.people["bob"]).scopes == ["read"]
    assert 'title="Read everything that you can see"' in page
