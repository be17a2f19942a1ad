"""Every method of the client sends and reads what the served OpenAPI document describes."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import httpx2
import pytest
from django.test import Client as Console
from django.utils.dateparse import parse_datetime
from jsonschema import Draft202012Validator
from tests.api.conftest import World, db, job, shared_world, world

from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues.models import Queue
from hekla.client import Client, documents
from hekla.lib import clock

__all__ = ["db", "shared_world", "world"]

MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: sent}
spec: {tasks: [{name: main, template: {spec: {containers: [{name: m, command: ["true"]}]}}}]}
"""
CALLS: dict[str, Callable[[Client], object]] = {
    "me": Client.me,
    "submit": lambda client: client.submit(job("new"), tenant="lab"),
    "submit a manifest": lambda client: client.submit(MANIFEST, key="once"),
    "check": lambda client: client.check(job("new"), tenant="lab"),
    "what_if": lambda client: client.what_if(job("new"), tenant="lab"),
    "jobs": lambda client: list(client.jobs(mine=True, phase=["pending", "running"], limit=1)),
    "job": lambda client: client.job("train"),
    "compare": lambda client: client.compare(["train", "stopped"], metric="loss", points=True),
    "wait": lambda client: client.wait("train", until={"pending"}),
    "autoscaling": lambda client: client.autoscaling("train"),
    "start_estimate": lambda client: client.start_estimate("train"),
    "pending_periods": lambda client: client.pending_periods("train"),
    "abort": lambda client: client.abort("train"),
    "resume": lambda client: client.resume("stopped"),
    "restart": lambda client: client.restart("train"),
    "restart a task": lambda client: client.restart("train", "worker"),
    "restart a pod": lambda client: client.restart("train", "worker", 0),
    "delete_job": lambda client: client.delete_job("stopped"),
    "scale": lambda client: client.scale("train", {"worker": 2}, least={"worker": 1}, least_of_all=1, revision=1),
    "set_priority": lambda client: client.set_priority("train", 5),
    "logs": lambda client: list(client.logs("train")),
    "queues": Client.queues,
    "quotas": lambda client: client.quotas("lab"),
    "clusters": Client.clusters,
    "federated_queues": Client.federated_queues,
    "nodes": Client.nodes,
    "uid": lambda client: client.uid("train"),
}


class ValidatingTransport(httpx2.BaseTransport):
    """Forwards requests to the console, and validates request and response against the document."""

    def __init__(self, document: Any) -> None:
        self._console = Console()
        self.document = document
        self.validated: list[str] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name: value for name, value in request.headers.items() if name not in {"content-type", "host"}}
        kind = request.headers.get("Content-Type", "")
        path = request.url.raw_path.decode()
        django_response = self._console.generic(
            request.method, path, request.content, content_type=kind, headers=headers
        )
        answer = httpx2.Response(
            django_response.status_code, headers=dict(django_response.items()), content=django_response.content
        )
        self._validate(request, answer)
        return answer

    def _validate(self, request: httpx2.Request, answer: httpx2.Response) -> None:
        operation = self._operation(request)
        self.validated.append(operation["operationId"])
        known = {one["name"] for one in operation.get("parameters", []) if one["in"] in {"query", "header"}}
        sent = {*request.url.params, *({"Idempotency-Key"} & {name.title() for name in request.headers})}
        assert sent <= known | {"Idempotency-Key"} & known, (operation["operationId"], sent - known)
        if request.content and request.headers["Content-Type"] == "application/json":
            self._check_schema(
                operation["requestBody"]["content"]["application/json"]["schema"], json.loads(request.content)
            )
        elif request.content:
            assert request.headers["Content-Type"] in operation["requestBody"]["content"]
        response = operation["responses"][str(answer.status_code)]
        if answer.content:
            self._check_schema(response["content"]["application/json"]["schema"], answer.json())

    def _operation(self, request: httpx2.Request) -> Any:
        paths = self.document["paths"]
        found = [path for path in paths if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request.url.path)]
        assert found, request.url.path
        return paths[min(found, key=lambda path: path.count("{"))][request.method.lower()]

    def _check_schema(self, schema: Mapping[str, Any], document: object) -> None:
        whole = {**schema, "components": self.document["components"]}
        Draft202012Validator(whole).validate(document)


@pytest.fixture(scope="module")
def document(shared_world: World) -> Any:
    return shared_world.as_("alice").get("/api/v1/schema").json()


@pytest.fixture
def client(world: World, document: Any) -> Client:
    """A validating client of Alice's. One of her jobs has a pod, another was aborted."""
    alice = world.as_("alice")
    for name in ("train", "stopped"):
        assert alice.post("/api/v1/jobs", job(name), format="json").status_code == 201
    Job.objects.filter(name="stopped").update(phase="aborted", finished_at=clock.now())
    train = Job.objects.get(name="train")
    replica = {"task": "worker", "index": 0, "attempt": 1, "version": 1, "slot": 1, "address": "127.0.0.1"}
    Pod.objects.create(job=train, **replica, phase="running", node="n", created_at=clock.now())
    assert Queue.objects.count() == 2
    token = alice._credentials["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
    return Client("http://testserver", token, transport=ValidatingTransport(document))


def test_every_method_is_covered() -> None:
    own = {name for name, value in vars(Client).items() if callable(value) and not name.startswith("_")}
    assert own - {"log_pieces"} == {call.split()[0] for call in CALLS}


@pytest.mark.parametrize("call", CALLS)
def test_requests_and_responses_match_the_document(client: Client, call: str) -> None:
    CALLS[call](client)
    assert client._http._transport.validated  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("of", "component"),
    [
        (documents.JobDocument, "Job"),
        (documents.JobDetail, "JobDetail"),
        (documents.PodDocument, "Pod"),
        (documents.SubmitResult, "Submitted"),
        (documents.DryRunResult, "Checked"),
    ],
)
def test_typed_documents_match_the_schema(client: Client, of: type, component: str) -> None:
    known = client._http._transport.document["components"]["schemas"][component]["properties"]
    assert set(get_type_hints(of)) <= set(known)


def test_jobs_are_paged(client: Client) -> None:
    names = [one["name"] for one in client.jobs(limit=1)]
    assert names == ["stopped", "train"]
    assert all(parse_datetime(one["submitted_at"]) for one in client.jobs())
