"""What an editor shows beside a manifest: problems with their lines, and the fields that its reader knows."""

import pytest

from hekla.domain import formats

VOLCANO = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: Bad Name
spec:
  queeue: default
  tasks:
    - name: main
      replicas: two
      template:
        spec:
          containers:
            - name: c
              image: x
              resources: {limits: {cpu: four}}
"""
SPEC = """\
name: ok
tasks:
  - name: main
    replcas: 2
    command: [x]
    resources:
      cpu: "1"
      nvidia.com/gpu: four
  - command: [x]
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (VOLCANO, {"spec.queeue": 6, "metadata.name": 4, "spec.tasks[0].replicas": 9,
            "spec.tasks[0].template.spec.containers[0].resources.limits.cpu": 15}),
        (SPEC, {"tasks.0.replcas": 4, "tasks.0.resources.nvidia.com/gpu": 8, "tasks.1.name": 9}),
        ("name: x\na: [", {"": 3}),
        ("a: 1\n---\n- 1\n", {"": 1}),
        ("[" * 100_000, {"": 1}),
        ("- " * 100_000, {"": 1}),
        ("- x\n" * 120_000, {"": 1}),
        ("name: x\nqueue: *none", {"": 2}),
    ],
)  # fmt: skip
def test_each_problem_has_its_line(text: str, lines: dict[str, int]) -> None:
    found = formats.inspect(text)
    assert found.loaded is None
    assert {problem.path: found.line_of(problem.path) for problem in found.problems} == lines


def test_fields_are_those_that_the_reader_knows() -> None:
    found = formats.inspect(VOLCANO).fields
    assert {"minAvailable", "queue", "tasks", "plugins"} <= {*found["spec"]}
    assert {"image", "command", "resources"} <= {*found["spec.tasks[0].template.spec.containers[0]"]}
    found = formats.inspect("name: a\ntasks:\n- autoscaling:\n    ma").fields
    assert "queue" in found[""]
    assert found["tasks[0].autoscaling"] == ["max_replicas", "gpu_utilization", "stabilization_seconds"]
    assert {"apiVersion", "tasks"} <= {*formats.inspect("").fields[""]}
    found = formats.inspect("name: a\ntasks:\n- name: main\n  repl\n  command: [x]").fields
    assert "replicas" in found["tasks[0]"]
    assert formats.inspect("a: [\n- b\n- [").fields == {}


def test_parts_of_the_job_have_the_line_of_their_origin() -> None:
    text = VOLCANO.replace("Bad Name", "good").replace("queeue", "queue").replace("two", "2").replace("four", "4")
    found = formats.inspect(text)
    assert found.loaded is not None
    assert (found.line_of_part("queue"), found.line_of_part("tasks.0.replicas")) == (6, 9)
    assert found.line_of_part("tasks.0.resources.cpu") == 15
