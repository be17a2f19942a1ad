"""Templates: open fields accept values within their bounds, and all other fields are locked."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.specs import SPECS

from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.templates import OpenField, instantiate, openable_fields, parse_open_fields

TASK = {"name": "main", "command": ["sh", "-c", "echo a b"], "env": {"LR": "0.1"}, "resources": {"memory": "1Gi"}}
JOB = JobSpec.parse({"name": "one", "tasks": [TASK], "files": {"conf/a.py": "1"}})


def open_field(place, **bounds):
    return parse_open_fields(JOB, [{"place": place, **bounds}])


@settings(deadline=None)
@given(SPECS, st.data())
def test_filling_in_the_same_values_changes_nothing(spec, data):
    chosen = data.draw(st.lists(st.sampled_from(list(openable_fields(spec))), unique=True, max_size=6))
    fields = parse_open_fields(spec, [{"place": place} for place, _value in chosen])
    assert instantiate(spec, fields, dict(chosen), name=spec.name) == spec


@pytest.mark.parametrize(
    ("place", "bounds", "text", "want"),
    [
        ("tasks.main.replicas", {"least": "1", "most": "4"}, "4", lambda job: job.tasks[0].replicas == 4),
        ("tasks.main.env.LR", {"choices": ["0.1", "0.2"]}, "0.2", lambda job: job.tasks[0].env["LR"] == "0.2"),
        ("tasks.main.env.LR", {"most": "1"}, "1e-3", lambda job: job.tasks[0].env["LR"] == "1e-3"),
        ("tasks.main.resources.memory", {"most": "2Gi"}, "2000Mi", lambda job: True),
        ("tasks.main.resources.memory", {}, "", lambda job: job.tasks[0].resources == {}),
        ("tasks.main.command", {}, "echo 'a b'", lambda job: job.tasks[0].command == ("echo", "a b")),
        ("files.conf/a.py", {}, "print(1)\n", lambda job: job.files == {"conf/a.py": "print(1)\n"}),
        ("priority", {"least": "-5"}, "-5", lambda job: job.priority == -5),
    ],
)
def test_open_field_accepts_values_within_its_bounds(place, bounds, text, want):
    job = instantiate(JOB, open_field(place, **bounds), {place: text}, name="other")
    assert want(job)
    assert job.name == "other"


@pytest.mark.parametrize(
    ("place", "bounds", "values", "message"),
    [
        ("priority", {"most": "5"}, {"priority": "6"}, "at most 5"),
        ("priority", {"most": "5"}, {"priority": ""}, "not an amount"),
        ("priority", {"most": "5"}, {"priority": "nan"}, "not an amount"),
        ("tasks.main.replicas", {"least": "2"}, {"tasks.main.replicas": "1"}, "at least 2"),
        ("tasks.main.resources.memory", {"most": "2Gi"}, {"tasks.main.resources.memory": "3Gi"}, "at most 2Gi"),
        ("queue", {"choices": ["a", "b"]}, {"queue": "c"}, "not one of: a, b"),
        ("priority", {}, {"queue": "other"}, "locked"),
        ("priority", {}, {"name": "other"}, "locked"),
        ("priority", {}, {"tasks.main.env.NEW": "1"}, "locked"),
        ("tasks.main.env.LR", {}, {"tasks": "[]"}, "locked"),
        ("tasks.main.replicas", {}, {"tasks.main.replicas": "many"}, "integer"),
    ],
)
def test_locked_fields_and_values_out_of_bounds_are_refused(place, bounds, values, message):
    with pytest.raises(Invalid) as caught:
        instantiate(JOB, open_field(place, **bounds), values, name="other")
    [problem] = caught.value.problems
    assert problem.path == next(iter(values))
    assert message in problem.message


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"place": "policies"}, "has no field"),
        ({"place": "tasks.other.replicas"}, "has no field"),
        ({"place": "priority", "least": "x"}, "are amounts"),
        ({"place": "priority", "least": "5", "most": "4"}, "exceeds the maximum"),
        ({"place": "priority", "colour": "red"}, "colour"),
    ],
)
def test_invalid_open_field_is_refused(field, message):
    with pytest.raises(Invalid) as caught:
        parse_open_fields(JOB, [field])
    assert message in f"{caught.value.problems[0].path} {caught.value.problems[0].message}"


def test_open_field_checks_a_value():
    assert OpenField(place="priority", least="1").problem("2") == ""


def test_duplicate_open_field_is_refused():
    with pytest.raises(Invalid) as caught:
        parse_open_fields(JOB, [{"place": "priority"}] * 2)
    assert "Duplicate" in caught.value.problems[0].message
