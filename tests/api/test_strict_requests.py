"""Requests with nonsense are refused, instead of doing something else than they say."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient
from tests.api.conftest import World, job

from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Department

JOBS = "/api/v1/jobs"
PHYSICS = {"slug": "physics", "name": "Physics", "tenants": ["lab"]}


@pytest.mark.parametrize("query", ["dry-run=1", "dry_run=maybe", "dry_run=", "dry_run=1&dry_run=0", "dryrun"])
def test_misspelt_dry_run_submits_nothing(alice: APIClient, query: str) -> None:
    answer = alice.post(f"{JOBS}?{query}", job(), format="json")
    assert (answer.status_code, Job.objects.count()) == (400, 0)


@pytest.mark.parametrize("value", ["1", "true"])
def test_dry_run_checks_only(alice: APIClient, value: str) -> None:
    answer = alice.post(f"{JOBS}?dry_run={value}", job(), format="json")
    assert (answer.status_code, Job.objects.count()) == (200, 0)
    assert alice.post(f"{JOBS}?dry_run=0", job(), format="json").status_code == 201


@pytest.mark.parametrize(
    ("address", "document", "path"),
    [
        ("departments", {**PHYSICS, "slug": 5}, "slug"),
        ("departments", {**PHYSICS, "tenants": {}}, "tenants"),
        ("departments", {**PHYSICS, "tenants": [5]}, "tenants.0"),
        ("priority-classes", {"name": "high", "value": "10"}, "value"),
        ("priority-classes", {"name": "high", "value": 10, "is_offered": 1}, "is_offered"),
        (
            "gallery",
            {"title": "One", "spec": job(), "fields_open": [{"place": "tasks.worker.replicas", "last": "3"}]},
            "fields_open.0.last",
        ),
    ],
)
def test_values_of_other_types_and_unknown_fields_are_refused(
    root: APIClient, address: str, document: dict[str, Any], path: str
) -> None:
    answer = root.post(f"/api/v1/{address}", document, format="json")
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == [path]


def test_an_empty_object_does_not_remove_the_tenants_of_a_department(root: APIClient) -> None:
    assert root.post("/api/v1/departments", PHYSICS, format="json").status_code == 201
    changed = root.patch("/api/v1/departments/physics", {"tenants": {}}, format="json")
    assert (changed.status_code, Department.objects.get().tenants.count()) == (400, 1)
    changed = root.patch("/api/v1/departments/physics", {"tenants": []}, format="json")
    assert (changed.status_code, Department.objects.get().tenants.count()) == (200, 0)


def test_quantities_may_be_numbers(world: World, root: APIClient) -> None:
    changed = root.patch(f"/api/v1/queues/{world.queue.name}", {"capability": {"cpu": 2}}, format="json")
    assert (changed.status_code, changed.json()["capability"]) == (200, {"cpu": "2"})


@pytest.mark.parametrize(
    ("text", "status"), [("3", 200), ("3.0", 200), ("3e0", 200), ("3.5", 400), ('"3"', 400), ("1e999", 400)]
)
def test_integers_may_be_written_with_a_point(alice: APIClient, text: str, status: int) -> None:
    body = json.dumps(job(max_retry="?")).replace('"?"', text)
    answer = alice.post(f"{JOBS}?dry_run=1", body, content_type="application/json")
    assert (answer.status_code, answer.json().get("spec", {}).get("max_retry", 3)) == (status, 3)


@pytest.mark.parametrize("limit", ["0", "201", "no", "-5"])
def test_pages_of_impossible_size_are_refused(alice: APIClient, limit: str) -> None:
    assert alice.get(f"{JOBS}?limit={limit}").status_code == 400
    assert alice.get(f"{JOBS}?limit=200").status_code == 200
