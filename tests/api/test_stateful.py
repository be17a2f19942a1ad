"""REST operations in sequence, as the links of the OpenAPI document connect them: create, read, change, delete.

Schemathesis walks along the links with all of its checks. Two rules need a sequence: a resource can be read once it is
created, and not any more once it is deleted (the check `use_after_free`). The machine checks the first one itself:
`ensure_resource_availability` skips requests whose whole path is the value of a link.
"""

from collections.abc import Sequence
from typing import Any

import pytest
import schemathesis
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from rest_framework.test import APIClient
from schemathesis.core.failures import FailureGroup
from schemathesis.core.transport import Response
from schemathesis.generation.stateful.state_machine import APIStateMachine
from tests.api.conftest import World
from tests.api.fuzzing import VALID, load, openapi_document
from tests.support.examples import EVERY, examples

from hekla.api import throttles
from hekla.api.v1.flows import TemplateViewSet
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.flows import selectors as flows
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import services as tenancy
from hekla.domain.errors import NotFound
from hekla.lib import clock

DOCUMENTS = dict(VALID)


def _linked() -> dict[str, Any]:
    """The document with paths and bodies only: `test_fuzzing` sends the other parameters."""
    found = openapi_document()
    for operations in found["paths"].values():
        for operation in operations.values():
            parameters = operation.get("parameters", ())
            operation["parameters"] = [one for one in parameters if one["in"] == "path"]
    return found


LINKED = _linked()
CREATES = {
    f"POST {path}": operations["post"]["responses"]["201"]["links"]
    for path, operations in LINKED["paths"].items()
    if "links" in operations.get("post", {}).get("responses", {}).get("201", {})
}
OPERATIONS = {
    operation["operationId"]: (method, path)
    for path, operations in LINKED["paths"].items()
    for method, operation in operations.items()
}
TEMPLATES = ("/api/v1/templates", "/api/v1/templates/{uid}")
ENDED_BY = {
    "POST /api/v1/jobs": ("actions", {"action": "AbortJob"}),
    "POST /api/v1/flows": ("stop", {}),
    "POST /api/v1/policy-lab": ("cancel", {}),
}
"""How to end what can be deleted only then."""


@pytest.fixture
def root(world: World, settings: Any, monkeypatch: pytest.MonkeyPatch) -> APIClient:
    """A platform admin who is an admin of the tenant, too, without limits of requests."""
    settings.API_REQUESTS_A_MINUTE = 10**6
    monkeypatch.setattr(throttles, "WHAT_IFS", 10**6)
    away = clusters.create(name="away", kind="simulated", config={"nodes": []}, actor=PLATFORM, now=clock.now())
    queues.create(cluster=away, name="far", actor=PLATFORM, now=clock.now())
    tenancy.add_member(world.tenant, world.people["root"], "admin", actor=PLATFORM, now=clock.now())
    return world.as_("root")


def _machine(client: APIClient, *paths: str) -> type[APIStateMachine]:
    """A machine that sends requests of this person, to these addresses only if there are any."""
    schema = load(_only(paths) if paths else LINKED)
    schema.auth()(_signed_in(client))
    machine: type[APIStateMachine] = schema.as_state_machine()

    class Workflow(machine):  # type: ignore[misc, valid-type]
        def setup(self) -> None:
            self._number = 0
            self._gone: list[str] = []
            self._undo = transaction.atomic()
            self._undo.__enter__()

        def teardown(self) -> None:
            transaction.set_rollback(True)
            self._undo.__exit__(None, None, None)

        def get_call_kwargs(self, case: schemathesis.Case) -> dict[str, Any]:
            return {"headers": {"Accept-Encoding": "identity"}}

        def before_call(self, case: schemathesis.Case) -> None:
            """Let a valid request fit the rules, too, that the schema cannot state."""
            if case.meta and case.meta.generation.mode.is_positive:
                self._number += 1
                if case.operation.label in CREATES and case.path_parameters:
                    case.path_parameters = {"slug": "lab"}
                if case.operation.label in DOCUMENTS:
                    case.body = _fresh(DOCUMENTS[case.operation.label], self._number)
                    case.media_type = "application/json"

        def after_call(self, response: Response, case: schemathesis.Case) -> None:
            super().after_call(response, case)
            path = case.formatted_path
            parent = self.recorder.find_parent(case_id=case.id)
            created = self.recorder.find_response(case_id=parent.id) if parent else None
            if created and _leads_to(case, created) and not path.startswith(tuple(self._gone)):
                assert response.status_code != 404, f"{case.method} {path}: 404, just created"
            if response.status_code < 300 and (case.method == "DELETE" or _replaces(case)):
                self._gone.append(path)

    return Workflow


def _leads_to(case: schemathesis.Case, created: Response) -> bool:
    """Whether a valid request has the address of what the response created."""
    is_valid = bool(case.meta and case.meta.generation.mode.is_positive)
    values = {str(value) for value in case.path_parameters.values()} - {"lab"}
    return is_valid and created.status_code == 201 and all(value in created.text for value in values)


def _replaces(case: schemathesis.Case) -> bool:
    """Whether the request replaces its resource by a new one: a link of an invitation, sent again."""
    return case.operation.label == "POST /api/v1/tenants/{slug}/invitations/{invitation_id}"


def _only(paths: Sequence[str]) -> dict[str, Any]:
    """The document with these addresses only."""
    return {**LINKED, "paths": {path: LINKED["paths"][path] for path in paths}}


def _signed_in(client: APIClient) -> type[Any]:
    """Adds the token of this client to each request."""

    class Token:
        def get(self, *_arguments: Any) -> str:
            return str(client._credentials["HTTP_AUTHORIZATION"])

        def set(self, case: schemathesis.Case, token: str, *_arguments: Any) -> None:
            case.headers["Authorization"] = token

    return Token


def _fresh(document: dict[str, Any], number: int) -> dict[str, Any]:
    """The document, with names that no other has."""
    return {**document, **{key: f"fresh-{number}" for key in ("name", "slug") if key in document}}


def _settings(count: int) -> settings:
    return settings(
        max_examples=examples(count),
        stateful_step_count=8,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def test_sequences_are_answered_as_described(root: APIClient) -> None:
    _machine(root).run(settings=_settings(80 if EVERY == 1 else 40))


@pytest.mark.parametrize("label", CREATES)
def test_links_lead_to_what_was_created(root: APIClient, label: str) -> None:
    """The links of a creation that read lead to the new resource, and nowhere after its DELETE."""
    path = label.removeprefix("POST ").replace("{slug}", "lab")
    created = root.post(path, _fresh(DOCUMENTS[label], 0), format="json")
    assert created.status_code == 201, created.text
    requests = [(*OPERATIONS[name], link["parameters"]) for name, link in CREATES[label].items()]
    reads = [_follow(address, values, created.json()) for method, address, values in requests if method == "get"]
    assert [root.get(read).status_code for read in reads] == [200] * len(reads)
    own = f"{path}/{{"
    for method, address, values in requests:
        if method == "delete" and address.startswith(own) and address.endswith("}"):
            deleted = _follow(address, values, created.json())
            if label in ENDED_BY:
                ending, action = ENDED_BY[label]
                assert root.post(f"{deleted}/{ending}", action, format="json").status_code == 200
            assert root.delete(deleted).status_code == 204
            left = 200 if label == "POST /api/v1/jobs" else 404  # the history of deleted jobs is kept
            assert {root.get(read).status_code for read in reads} <= {left}


def _follow(address: str, values: dict[str, str], created: dict[str, Any]) -> str:
    """The address that a link leads to from the response of a creation."""
    for name, expression in values.items():
        found: Any = created
        for step in expression.partition("#/")[2].split("/") if "#" in expression else ():
            found = found[int(step) if isinstance(found, list) else step]
        address = address.replace(f"{{{name}}}", str(found) if "#" in expression else "lab")
    return address


@pytest.mark.thorough
def test_reading_what_was_deleted_is_found(root: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TemplateViewSet, "perform_destroy", lambda *_arguments: None)
    with pytest.raises(FailureGroup) as found:
        _machine(root, *TEMPLATES).run(settings=_settings(1000))
    assert [type(failure).__name__ for failure in found.value.exceptions] == ["UseAfterFree"]


def test_missing_what_was_created_is_found(root: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(*_arguments: Any) -> Any:
        raise NotFound("There is no such template.")

    monkeypatch.setattr(flows, "template", find_nothing)
    with pytest.raises(AssertionError, match="just created"):
        _machine(root, *TEMPLATES).run(settings=_settings(1000))
