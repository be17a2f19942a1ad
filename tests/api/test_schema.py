"""The OpenAPI document."""

from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from drf_spectacular.validation import validate_schema

from hekla.api.v1.schema import SchemaView
from hekla.domain.jobspec import JobSpec


def test_the_schema_is_valid_and_was_made_without_a_warning(alice, capsys):
    GENERATOR_STATS.reset()
    schema = alice.get("/api/v1/schema").json()
    assert not GENERATOR_STATS, capsys.readouterr().err
    validate_schema(schema)
    sent = schema["paths"]["/api/v1/jobs"]["post"]["requestBody"]["content"]
    assert sent["application/json"]["schema"] == {"$ref": "#/components/schemas/JobSpec"}
    assert set(schema["components"]["schemas"]["JobSpec"]["properties"]) == set(JobSpec.model_fields)


def test_nothing_in_the_schema_takes_the_place_of_another():
    """A serializer and a model of what is sent, of one name, would be one component."""
    settings = SchemaView().custom_settings
    appended = settings["APPEND_COMPONENTS"]["schemas"]
    with patched_settings({**settings, "APPEND_COMPONENTS": {}}):
        generated = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    assert set(generated) & set(appended) == set()
