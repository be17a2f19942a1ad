"""The OpenAPI document."""

from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from drf_spectacular.validation import validate_schema

from hekla.api.v1.schema import SchemaView
from hekla.domain.jobspec import JobSpec


def test_schema_is_valid_and_generated_without_warnings(alice, capsys):
    GENERATOR_STATS.reset()
    schema = alice.get("/api/v1/schema").json()
    assert not GENERATOR_STATS, capsys.readouterr().err
    validate_schema(schema)
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
            assert {"400", "401", "403", "404", "406", "409", "429"} <= found.keys()
            assert found["429"]["headers"]["Retry-After"]["required"]
            assert "WWW-Authenticate" in found["401"]["headers"]
            assert ("304" in found) is (method == "get")
            assert ("412" in found) is (method in {"put", "patch", "delete"})
            assert ("413" in found and "415" in found) is ("requestBody" in operation)
            for code, answer in found.items():
                assert code < "400" or [*answer["content"]] == ["application/problem+json"]
