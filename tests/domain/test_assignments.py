"""Assignments such as `tasks.main.replicas=4` change one field of a job; invalid ones are refused."""

import pytest

from hekla.domain.assignments import apply_assignments
from hekla.domain.errors import Invalid

JOB = {"name": "one", "priority": 3, "tasks": [{"name": "main", "command": ["true"], "env": {"A": "1"}}]}


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("priority=7", {"priority": 7}),
        ("priority=", {"priority": None}),
        ("queue=other", {"queue": "other"}),
        ("tasks.main.replicas=4", {"main": {"replicas": 4}}),
        ("tasks.main.env.LR=0.1", {"main": {"env": {"A": "1", "LR": "0.1"}}}),
        ("tasks.main.env.A=x=y", {"main": {"env": {"A": "x=y"}}}),
        ("tasks.main.resources.nvidia.com/gpu=2", {"main": {"resources": {"nvidia.com/gpu": "2"}}}),
        ("tasks.main.command=sh -c 'echo a b'", {"main": {"command": ["sh", "-c", "echo a b"]}}),
        ("files.conf/train.py=print(1)", {"files": {"conf/train.py": "print(1)"}}),
        ("policies=[{exit_code: 3, action: AbortJob}]", {"policies": [{"exit_code": 3, "action": "AbortJob"}]}),
    ],
)  # fmt: skip
def test_assignment_changes_one_field(word, want):
    changed = apply_assignments(JOB, [word])
    task = {**JOB["tasks"][0], **want.pop("main", {})}
    assert changed == {name: value for name, value in {**JOB, "tasks": [task], **want}.items() if value is not None}
    assert JOB["priority"] == 3


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("priority", "path=value"),
        (".a=1", "path=value"),
        ("tasks.other.replicas=1", "Available: main"),
        ("tasks.main=1", "Name a task"),
        ("name.first=1", "has no nested fields"),
        ("tasks.main.command='open", "quotation"),
        ("priority=[", "YAML"),
    ],
)
def test_invalid_assignment_is_refused_with_a_reason(word, message):
    with pytest.raises(Invalid) as caught:
        apply_assignments(JOB, [word])
    assert message in caught.value.problems[0].message


def test_task_may_have_the_name_of_a_field():
    job = {"tasks": [{"name": "env", "command": ["true"]}]}
    changed = apply_assignments(job, ["tasks.env.replicas=2", "tasks.env.env.A=1"])
    assert changed["tasks"] == [{"name": "env", "command": ["true"], "replicas": 2, "env": {"A": "1"}}]
