"""Lists are paged or bounded: a walk over every operation that answers with one."""

from collections.abc import Iterator
from typing import Any

import pytest
from rest_framework.test import APIClient
from tests.api.conftest import World, job
from tests.api.fuzzing import openapi_document

from hekla.api.arrays import MAX_ITEMS
from hekla.api.queries import MAX_PAGE
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.lib import clock

DOCUMENT = openapi_document()
ROWS = {"slug": "lab", "task": "worker", "index": 0, "name": "sim"}


def _lists() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The address, the parameters and the schema of each list: an array, or an object with `results`."""
    for path, operations in DOCUMENT["paths"].items():
        if "get" in operations:
            schema = operations["get"]["responses"]["200"]["content"].get("application/json", {}).get("schema", {})
            schema = DOCUMENT["components"]["schemas"].get(schema.get("$ref", "").rsplit("/")[-1], schema)
            if schema.get("type") == "array" or "results" in schema.get("properties", {}):
                parameters = {one["name"]: one["schema"] for one in operations["get"]["parameters"]}
                yield path, parameters, schema


LISTS = list(_lists())


def test_lists_are_found() -> None:
    assert len(LISTS) > 20


@pytest.mark.parametrize(("path", "parameters", "schema"), LISTS, ids=[path for path, *_ in LISTS])
def test_lists_have_bounds(root: APIClient, path: str, parameters: dict[str, Any], schema: dict[str, Any]) -> None:
    bound = MAX_ITEMS if schema["type"] == "array" else MAX_PAGE
    assert parameters["limit"]["maximum"] <= bound
    assert parameters.keys() & {"offset", "cursor", "before"}
    if schema["type"] == "array":
        assert schema["maxItems"] == MAX_ITEMS
    if "{" not in path:
        required: dict[str, Any] = {"q": "de"} if path.endswith("search") else {}
        answer = root.get(path, {"limit": 1, **required}).json()
        assert len(answer if isinstance(answer, list) else answer["results"]) <= 1
        assert root.get(path, {"limit": bound + 1, **required}).status_code == 400
        assert root.get(path, {"limit": 0, **required}).status_code == 400


def test_parts_of_an_array_are_linked(world: World, root: APIClient) -> None:
    for name in ("b", "c", "d"):
        queues.create(cluster=world.cluster, name=name, actor=PLATFORM, now=clock.now())
    names, address = list[str](), "/api/v1/queues?limit=2"
    while address:
        answer = root.get(address)
        names += [one["name"] for one in answer.json()]
        address = answer.headers.get("Link", "").partition(">")[0].removeprefix("<http://testserver")
    assert names == ["b", "c", "d", "default", "theirs"]
    assert "Link" not in root.get("/api/v1/queues").headers


def test_attempts_of_a_pod_are_divided(alice: APIClient) -> None:
    uid = alice.post("/api/v1/jobs", job(), format="json").json()["job"]["uid"]
    common = {"job": Job.objects.get(uid=uid), "task": "worker", "index": 0, "version": 1, "slot": 1, "address": ""}
    for attempt in range(3):
        Pod.objects.create(**common, attempt=attempt, created_at=clock.now())
    answer = alice.get(f"/api/v1/jobs/{uid}/pods/worker/0?limit=2&offset=1")
    assert [one["attempt"] for one in answer.json()] == [1, 2]
