"""Every REST operation of the OpenAPI document, with generated requests: what the API does is what the document says.

Schemathesis generates valid and invalid requests for every operation, and applies its checks to the answers.
Each request is rolled back. `HEKLA_EXAMPLES=20` sends all requests of its coverage phase, ten thousand, and more random
ones; by default a part of them.
"""

import json
from collections import Counter
from typing import Any
from zlib import crc32

import pytest
import schemathesis
from django.db import transaction
from django.test.client import ClientHandler
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from hypothesis import HealthCheck, Phase, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import CoveragePhaseData
from tests.api.conftest import World
from tests.support.examples import examples

from hekla.api.v1.schema import SchemaView
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import services as tenancy
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


SUBMISSION_RULES = "fields depend on each other and on the installed plugins: JSON Schema has no such rules"
ROWS = "names rows, which the schema does not know"
RULES = {
    "POST /api/v1/jobs": SUBMISSION_RULES,
    "POST /api/v1/what-if": SUBMISSION_RULES,
    "POST /api/v1/templates": SUBMISSION_RULES,
    "POST /api/v1/flows": SUBMISSION_RULES,
    "POST /api/v1/batches": SUBMISSION_RULES,
    "POST /api/v1/schedules": SUBMISSION_RULES,
    "PATCH /api/v1/schedules/{uid}": SUBMISSION_RULES,
    "POST /api/v1/presets": SUBMISSION_RULES,
    "POST /api/v1/gallery": SUBMISSION_RULES,
    "POST /api/v1/gallery/{uid}/jobs": "the values fit the open fields of the template",
    "PATCH /api/v1/jobs/{uid}/scale": "the tasks are those of the job",
    "POST /api/v1/jobs/{uid}/actions": "each action needs other fields",
    "POST /api/v1/jobs/bulk": "each action needs other fields; filters must select something",
    "POST /api/v1/clusters": "each kind has its own configuration and credentials",
    "PATCH /api/v1/clusters/{name}": "each kind has its own configuration and credentials",
    "POST /api/v1/clusters/{name}/try": "each kind has its own configuration and credentials",
    "PUT /api/v1/clusters/{name}/policy": "the text is a policy in YAML",
    "POST /api/v1/clusters/{name}/policy/trial": "the text is a policy in YAML",
    "POST /api/v1/queues": ROWS,
    "PATCH /api/v1/queues/{name}": ROWS,
    "POST /api/v1/queues/{name}/preview": ROWS,
    "POST /api/v1/federated-queues": ROWS,
    "PATCH /api/v1/federated-queues/{name}": ROWS,
    "POST /api/v1/departments": ROWS,
    "PATCH /api/v1/departments/{slug}": ROWS,
    "PUT /api/v1/tenants/{slug}/quotas": ROWS,
    "POST /api/v1/priority-classes": ROWS,
    "PATCH /api/v1/priority-classes/{name}": ROWS,
    "PATCH /api/v1/tenants/{slug}/retention": "history is kept at least as long as logs",
    "PUT /api/v1/notifications/settings": "channels need an address, which must be a public one",
    "PUT /api/v1/jobs/{uid}/notifications": "channels need an address",
    "POST /api/v1/people/import": "the text is a table",
}
"""Operations that refuse some documents which fit their schema. The reason says which rule a schema cannot state.

`positive_data_acceptance` asks that every such document is accepted. Here it accepts 400 as well, and
`test_valid_documents_are_accepted` sends documents that fit the rules.
"""
VALID: list[tuple[str, dict[str, Any]]] = [
    *((f"POST /api/v1/{kind}", document) for kind, document in DOCUMENTS.items()),
    ("POST /api/v1/what-if", JOB),
    ("POST /api/v1/presets", {"name": "mine", "spec": JOB}),
    ("POST /api/v1/gallery", {"title": "One", "spec": JOB, "tenant": "lab"}),
    ("PATCH /api/v1/schedules/{uid}", {"cron": "@hourly"}),
    ("PATCH /api/v1/jobs/{uid}/scale", {"tasks": {"main": {"replicas": 2}}}),
    ("POST /api/v1/jobs/{uid}/actions", {"action": "AbortJob"}),
    ("PATCH /api/v1/clusters/{name}", {"is_paused": True}),
    ("PATCH /api/v1/queues/{name}", {"weight": 2, "capability": {"cpu": "2"}}),
    ("POST /api/v1/queues/{name}/preview", {"weight": 2}),
    ("POST /api/v1/federated-queues", {"name": "any", "members": ["default", "far"], "tenants": ["lab"]}),
    ("POST /api/v1/departments", {"slug": "physics", "name": "Physics", "heads": ["alice"], "tenants": ["lab"]}),
    ("POST /api/v1/priority-classes", {"name": "high", "value": 10}),
    ("PUT /api/v1/tenants/{slug}/quotas", {"of": "one", "username": "alice", "jobs": 2}),
    ("PATCH /api/v1/tenants/{slug}/retention", {"log_days": 1, "history_days": 2}),
    ("POST /api/v1/people/import", {"text": "email\nzoe@example.org\n"}),
]
_ANSWERED = ["2xx", "3xx", "401", "403", "404", "409", "412", "429"]
"""412: a generated `If-Match` is well formed, but no ETag of the resource."""
CONFIG = SchemathesisConfig.from_dict(
    {
        "generation": {"mode": "all", "allow-x00": False},  # no text takes NUL; `test_malformed_requests` sends some
        "checks": {
            "positive_data_acceptance": {"expected-statuses": _ANSWERED},
            "negative_data_rejection": {
                "expected-statuses": ["400", "401", "403", "404", "405", "406", "409", "412", "413", "415"]
            },
        },
        "operations": [
            {
                "include-name": label,
                "checks": {"positive_data_acceptance": {"expected-statuses": [*_ANSWERED, "400"]}},
            }
            for label in RULES
        ],
    }
)


def _application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """The console, in the transaction of the test."""
    response = ClientHandler()(environ)
    start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
    return [response.content]


def _schema() -> Any:
    with patched_settings(SchemaView().custom_settings):
        document = SchemaGenerator().get_schema(request=None, public=True)
    schema = schemathesis.openapi.from_dict(json.loads(json.dumps(document, default=str)), config=CONFIG)
    schema.app = _application
    return schema


SCHEMA = _schema()
OPERATIONS = {operation.label: operation for operation in (found.ok() for found in SCHEMA.get_all_operations())}
_QUICK = {
    "max_examples": examples(12),
    "deadline": None,
    "derandomize": True,
    "database": None,
    "phases": [Phase.explicit, Phase.generate],
    "suppress_health_check": list(HealthCheck),
}


@pytest.fixture
def path_values(world: World) -> dict[str, dict[str, Any]]:
    """Values for path parameters of existing rows, by the first segment of the path; also the queue `far` elsewhere."""
    away = clusters.create(name="away", kind="simulated", config={"nodes": []}, actor=PLATFORM, now=clock.now())
    queues.create(cluster=away, name="far", actor=PLATFORM, now=clock.now())
    tenancy.add_member(world.tenant, world.people["root"], "admin", actor=PLATFORM, now=clock.now())
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
def headers(world: World) -> list[dict[str, str]]:
    """A platform admin, and a member of a tenant."""
    tokens = [world.as_(name)._credentials["HTTP_AUTHORIZATION"] for name in ("root", "alice")]
    return [{"Authorization": token, "Accept-Encoding": "identity"} for token in tokens]


def test_all_operations_are_found() -> None:
    assert len(OPERATIONS) > 40
    assert RULES.keys() <= OPERATIONS.keys()


_sent: Counter[str] = Counter()


def _is_left_out(case: schemathesis.Case) -> bool:
    """Whether this request of the coverage phase is not among those sent now: the phase has up to 900 an operation."""
    if not isinstance(case.meta and case.meta.phase.data, CoveragePhaseData):
        return False
    _sent[case.operation.label] += 1
    number = _sent[case.operation.label]
    share = examples(100) / 2000
    return crc32(f"{case.operation.label} {number}".encode()) / 2**32 > share


def _place(case: schemathesis.Case, values: dict[str, dict[str, Any]]) -> None:
    """Let the request concern a row that exists, unless its path is the invalid part."""
    if case.path_parameters and not (case.meta and case.meta.is_negative_at(ParameterLocation.PATH)):
        own = values.get(case.path.removeprefix("/api/v1/").split("/", maxsplit=1)[0], {})
        case.path_parameters = {name: own.get(name, value) for name, value in case.path_parameters.items()}


@SCHEMA.parametrize()
@settings(**_QUICK)
def test_answers_are_as_described(
    case: schemathesis.Case, headers: list[dict[str, str]], path_values: dict[str, dict[str, Any]]
) -> None:
    if _is_left_out(case):
        return
    _place(case, path_values)
    for own in headers:
        with transaction.atomic():
            answer = case.call_and_validate(headers=own)
            transaction.set_rollback(True)
        assert answer.status_code != 429
        if answer.status_code >= 400 and case.method != "HEAD":
            assert answer.json()["detail"]


@pytest.mark.parametrize(("label", "document"), VALID, ids=[label for label, _document in VALID])
def test_valid_documents_are_accepted(
    headers: list[dict[str, str]], path_values: dict[str, dict[str, Any]], label: str, document: dict[str, Any]
) -> None:
    own = path_values.get(label.split("/api/v1/")[1].split("/", maxsplit=1)[0], {})
    new = {**document, "name": "fresh"} if "name" in document else document
    case = OPERATIONS[label].Case(path_parameters=own, body=new, media_type="application/json")
    answer = case.call_and_validate(headers=headers[0])
    assert 200 <= answer.status_code < 300, answer.text
