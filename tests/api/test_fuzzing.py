"""Every REST operation of the OpenAPI document, with generated requests: what the API does is what the document says.

Schemathesis generates valid and invalid requests for every operation, and applies its checks to the answers.
Each request is rolled back. By default a few random ones are sent; with `HEKLA_EXAMPLES=1` also a part of its coverage
phase, with `HEKLA_EXAMPLES=20` all ten thousand of it. Each worker generates that phase while it collects the tests.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest
import schemathesis
from django.test import override_settings
from hypothesis import HealthCheck, Phase, settings
from pytest_django.plugin import DjangoDbBlocker
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import CoveragePhaseData
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.api.conftest import World, make_world
from tests.api.fuzzing import DOCUMENTS, FITS, NAMES, ROWS_OF_ADMINS, VALID, load, openapi_document
from tests.support.examples import EVERY, examples
from tests.support.shared_rows import rolled_back

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import services as tenancy
from hekla.lib import clock

SCHEMA = load(openapi_document())
SCHEMA.config.phases.coverage.enabled = EVERY == 1
OPERATIONS = {operation.label: operation for operation in (found.ok() for found in SCHEMA.get_all_operations())}
_QUICK = {
    "max_examples": examples(12),
    "deadline": None,
    "derandomize": True,
    "database": None,
    "phases": [Phase.explicit, Phase.generate],
    "suppress_health_check": list(HealthCheck),
}


@pytest.fixture(scope="module")
def world(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """The rows of all tests here: to create them takes longer than a test."""
    own = override_settings(HEKLA_HOME=tmp_path_factory.mktemp("home"))
    with own, django_db_blocker.unblock(), rolled_back():
        yield make_world()


@pytest.fixture(autouse=True)
def db(world: World) -> Iterator[None]:
    """Roll back what a test changes."""
    with rolled_back():
        yield


@pytest.fixture(scope="module")
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
    root = world.as_("root")
    for kind, row in ROWS_OF_ADMINS.items():
        made = root.post(f"/api/v1/{kind}", row, format="json").json()
        found[kind] = {key: made[key] for key in ("uid", "name", "slug") if key in made}
    job = Job.objects.get(uid=found["jobs"]["uid"])
    replica = {"task": "main", "index": 0, "attempt": 1, "version": 1, "slot": 1, "address": "127.0.0.1"}
    Pod.objects.create(job=job, **replica, created_at=clock.now())
    return found


@pytest.fixture(scope="module")
def headers(world: World) -> list[dict[str, str]]:
    """A platform admin, and a member of a tenant."""
    tokens = [world.as_(name)._credentials["HTTP_AUTHORIZATION"] for name in ("root", "alice")]
    return [{"Authorization": token, "Accept-Encoding": "identity"} for token in tokens]


def test_all_operations_are_found() -> None:
    assert len(OPERATIONS) > 40
    assert FITS.keys() <= OPERATIONS.keys()


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


def _fit(case: schemathesis.Case, values: dict[str, dict[str, Any]]) -> bool:
    """Whether a valid request must be accepted. Every second one is changed to fit the rules beside the schema."""
    label = case.operation.label
    if label not in FITS or not (case.meta and case.meta.generation.mode.is_positive):
        return True
    if case.media_type != "application/json" or crc32(repr(case.body).encode()) % 2:
        return False
    own = values.get(case.path.removeprefix("/api/v1/").split("/", maxsplit=1)[0], {})
    case.body = FITS[label](case.body if isinstance(case.body, dict) else {}, own)
    return True


@SCHEMA.parametrize()
@settings(**_QUICK)
def test_answers_are_as_described(
    case: schemathesis.Case, headers: list[dict[str, str]], path_values: dict[str, dict[str, Any]]
) -> None:
    if _is_left_out(case):
        return
    _place(case, path_values)
    excluded = [] if _fit(case, path_values) else [positive_data_acceptance]
    for own in headers:
        with rolled_back():
            answer = case.call_and_validate(headers=own, excluded_checks=excluded)
        assert answer.status_code != 429
        if answer.status_code >= 400 and case.method != "HEAD":
            assert answer.json()["detail"]


@pytest.mark.parametrize(("label", "document"), VALID, ids=[label for label, _document in VALID])
def test_valid_documents_are_accepted(
    headers: list[dict[str, str]], path_values: dict[str, dict[str, Any]], label: str, document: dict[str, Any]
) -> None:
    own = path_values.get(label.split("/api/v1/")[1].split("/", maxsplit=1)[0], {})
    new = {**document, **({"name": "fresh"} if "name" in document else {})}
    if "uids" in document:
        new["uids"] = [own["uid"]]
    case = OPERATIONS[label].Case(path_parameters=own, body=new, media_type="application/json")
    answer = case.call_and_validate(headers=headers[0])
    assert 200 <= answer.status_code < 300, answer.text
