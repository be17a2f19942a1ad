"""The OpenAPI document."""

import json
import re
from pathlib import Path

from drf_spectacular import validation
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from jsonschema_rs import validator_for
from rest_framework.exceptions import APIException
from tests.support.examples import EVERY

from hekla.api.v1.schema import SchemaView, document
from hekla.domain.jobspec import JobSpec

OPENAPI = Path(validation.__file__).with_name("openapi_3_1_schema.json")
"""The schema of such documents. The validator of drf-spectacular takes eight CPU seconds for it, this one none."""


def test_schema_is_valid_and_generated_without_warnings(alice, capsys):
    document.cache_clear()
    GENERATOR_STATS.reset()
    schema = alice.get("/api/v1/schema").json()
    assert not GENERATOR_STATS, capsys.readouterr().err
    assert schema["openapi"].startswith("3.1")
    validator_for(json.loads(OPENAPI.read_text())).validate(schema)
    sent = schema["paths"]["/api/v1/jobs"]["post"]["requestBody"]["content"]
    assert sent["application/json"]["schema"] == {"$ref": "#/components/schemas/JobSpec"}
    assert set(schema["components"]["schemas"]["JobSpec"]["properties"]) == set(JobSpec.model_fields)


def test_component_names_are_unique():
    """A serializer and a request model with the same name would become one component."""
    settings = SchemaView().custom_settings
    appended = settings["APPEND_COMPONENTS"]["schemas"]
    with patched_settings({**settings, "APPEND_COMPONENTS": {}}):
        generated = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    assert set(generated) & set(appended) == set()


def test_operations_name_the_errors_that_they_answer_with(alice):
    """The errors that any endpoint can answer with, and those of bodies and of conditional changes."""
    for operations in alice.get("/api/v1/schema").json()["paths"].values():
        for method, operation in operations.items():
            found = operation["responses"]
            assert {"400", "401", "403", "404", "405", "406", "409", "429"} <= found.keys()
            assert found["429"]["headers"]["Retry-After"]["required"]
            assert found["405"]["headers"]["Allow"]["required"]
            assert "WWW-Authenticate" in found["401"]["headers"]
            assert ("304" in found) is (method == "get")
            assert ("412" in found) is (method in {"put", "patch", "delete"})
            assert ("413" in found and "415" in found) is ("requestBody" in operation)
            for code, answer in found.items():
                assert code < "400" or [*answer["content"]] == ["application/problem+json"]


def test_every_error_of_the_framework_and_of_the_api_is_described(alice):
    """A new kind of error needs a response in the document."""
    described = {
        int(code)
        for operations in alice.get("/api/v1/schema").json()["paths"].values()
        for operation in operations.values()
        for code in operation["responses"]
    }
    assert {error.status_code for error in _kinds(APIException)} - {500} <= described


def _kinds(error):
    return [error, *(kind for inner in error.__subclasses__() for kind in _kinds(inner))]


def test_other_methods_are_answered_as_described(alice, root, a_job):
    """405 with the methods of the document, at each address, and never 200 for one that the document does not have.

    By default a part of the methods is enough, another one at each address.
    """
    uid = alice.post("/api/v1/jobs", a_job, format="json").json()["job"]["uid"]
    known = {"uid": uid, "session": uid, "name": "default", "slug": "lab", "task": "worker", "username": "bob"}
    for number, (path, operations) in enumerate(alice.get("/api/v1/schema").json()["paths"].items()):
        address = re.sub(r"{(\w+)}", lambda found: known.get(found[1], "1"), path)
        for method in ("get", "post", "put", "patch", "delete", "trace")[number % EVERY :: EVERY]:
            if method not in operations:
                found = root.generic(method.upper(), address)
                assert (found.status_code, path) == (405, path)
                assert {name.lower() for name in found["Allow"].split(", ")} - {"options", "head"} == {*operations}
                assert {"405"} <= {code for operation in operations.values() for code in operation["responses"]}
