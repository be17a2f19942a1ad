"""Every REST operation of the OpenAPI document, with generated requests: no request causes a server error.

Schemathesis generates valid and invalid requests for every operation. Half of them concern rows that exist. Each
request is rolled back.
"""

import json
from typing import Any

import pytest
import requests
import schemathesis
from django.db import transaction
from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient
from tests.api.conftest import World
from tests.support.examples import examples

from hekla.api.v1.schema import SchemaView
from hekla.apps.jobs.models import Job, Pod
from hekla.lib import clock

JOB = {"name": "there", "tasks": [{"name": "main", "command": ["true"]}]}
DOCUMENTS = {
    "jobs": JOB,
    "templates": JOB,
    "flows": {"name": "there", "steps": [{"name": "a", "job": JOB}]},
    "batches": {
        "name": "there",
        "parameters": {"n": ["1"]},
        "job": {"tasks": [{"name": "main", "command": ["echo", "{{ n }}"]}]},
    },
    "schedules": {"name": "there", "cron": "@daily", "job": JOB},
}
NAMES = {"queues": "default", "clusters": "sim", "tenants": "lab"}


def _operations() -> dict[str, Any]:
    with patched_settings(SchemaView().custom_settings):
        document = SchemaGenerator().get_schema(request=None, public=True)
    schema = schemathesis.openapi.from_dict(json.loads(json.dumps(document, default=str)))
    return {operation.label: operation for operation in (found.ok() for found in schema.get_all_operations())}


OPERATIONS = _operations()


@pytest.fixture
def path_values(world: World) -> dict[str, dict[str, Any]]:
    """Values for path parameters of existing rows, by the first segment of the path."""
    alice = world.as_("alice")
    found: dict[str, dict[str, Any]] = {kind: {"name": name, "slug": name} for kind, name in NAMES.items()}
    for kind, document in DOCUMENTS.items():
        assert alice.post(f"/api/v1/{kind}", document, format="json").status_code == 201
        [made, *_] = alice.get(f"/api/v1/{kind}").json()["results"]
        found[kind] = {"uid": made["uid"], "task": "main", "index": 0}
    job = Job.objects.get(uid=found["jobs"]["uid"])
    replica = {"task": "main", "index": 0, "attempt": 1, "version": 1, "slot": 1, "address": "127.0.0.1"}
    Pod.objects.create(job=job, **replica, created_at=clock.now())
    return found


@pytest.fixture
def clients(world: World) -> list[APIClient]:
    """A platform admin, and a member of a tenant."""
    return [world.as_("root"), world.as_("alice")]


def test_all_operations_are_found() -> None:
    assert len(OPERATIONS) > 40


@pytest.mark.parametrize("label", OPERATIONS)
@settings(
    max_examples=examples(12),
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_no_request_causes_a_server_error(
    clients: list[APIClient], path_values: dict[str, dict[str, Any]], label: str, data: st.DataObject
) -> None:
    case = data.draw(OPERATIONS[label].as_strategy())
    values = path_values.get(label.rsplit("/api/v1/", maxsplit=1)[-1].split("/", maxsplit=1)[0], {})
    if data.draw(st.booleans(), "about what is there"):
        case.path_parameters = {name: values.get(name, value) for name, value in (case.path_parameters or {}).items()}
    for client in clients:
        answer = _send(client, case)
        assert answer.status_code < 500, (answer.status_code, answer.content[:300])
        assert answer.status_code != 429
        if answer.status_code >= 400:
            assert answer["Content-Type"] == "application/problem+json"
            assert answer.json()["detail"]


_OMITTED_HEADERS = {"content-length", "cookie", "accept-encoding"}
"""Answers are read before transport encoding."""


def _send(client: APIClient, case: schemathesis.Case) -> HttpResponse:
    """Send the request with this client, and roll it back."""
    made = requests.Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare()
    headers = {name: value for name, value in made.headers.items() if name.lower() not in _OMITTED_HEADERS}
    kind = headers.pop("Content-Type", "application/json")
    body = made.body.encode() if isinstance(made.body, str) else made.body or b""
    with transaction.atomic():
        answer: HttpResponse = client.generic(made.method, made.path_url, body, content_type=kind, headers=headers)
        transaction.set_rollback(True)
    return answer
