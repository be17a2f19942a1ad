"""Ports of tasks in Volcano Jobs: an annotation has them."""

import pytest

from hekla.domain import formats
from hekla.domain.errors import Invalid

A_BOARD = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a}
spec:
  tasks:
  - name: main
    template:
      metadata: {annotations: {hekla.io/ports: %s}}
      spec: {containers: [{command: [run], ports: [{name: debug, containerPort: 5678}]}]}
"""


def test_ports_are_those_of_the_annotation_only() -> None:
    loaded = formats.load(A_BOARD % '"board=6006, metrics=9090"')
    assert loaded.spec.tasks[0].ports == {"board": 6006, "metrics": 9090}
    assert loaded.warnings == ()
    assert "hekla.io/ports: board=6006,metrics=9090" in formats.dump(loaded.spec)
    assert formats.load(A_BOARD % '""').spec.tasks[0].ports == {}


def test_patch_keeps_ports() -> None:
    spec = formats.load(A_BOARD % '"board=6006"').spec
    changed = formats.apply_patch(spec, {"spec": {"tasks": {"main": {"replicas": 2}}}}).spec
    assert changed.tasks[0].ports == {"board": 6006}


@pytest.mark.parametrize(
    ("annotation", "sentence"),
    [
        ('"6006"', "ports with unique names"),
        ('"board=6006,board=6007"', "ports with unique names"),
        ('"board=6006,"', "ports with unique names"),
        ("6006", "ports with unique names"),
        ('"board=70000"', "65535"),
        ('"Board=6006"', "lowercase letters"),
    ],
)
def test_invalid_ports_are_refused_at_the_annotation(annotation, sentence) -> None:
    with pytest.raises(Invalid) as raised:
        formats.load(A_BOARD % annotation)
    (problem,) = raised.value.problems
    assert problem.path.startswith("spec.tasks[0].template.metadata.annotations.hekla.io/ports")
    assert sentence in problem.message.replace(",", "")
