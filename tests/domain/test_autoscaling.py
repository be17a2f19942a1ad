"""The rule of autoscaling: how many replicas a task should have, by the utilization of its cards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain import formats
from hekla.domain.autoscaling import Autoscaling, ScalingState, recommend
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec

RULE = Autoscaling(max_replicas=8, gpu_utilization=70, stabilization_seconds=120)
TASK = {"name": "worker", "replicas": 2, "min_available": 1, "command": ["train"], "resources": {"nvidia.com/gpu": "1"}}


def spec(**task):
    return JobSpec.parse({"name": "elastic", "tasks": [{**TASK, **task}]})


@pytest.mark.parametrize(
    ("replicas", "minutes", "state", "want"),
    [
        (2, [], "no_figures", 2),
        (2, [[], [10, 10]], "no_figures", 2),
        (2, [[91, 91]], "growing", 3),
        (2, [[75, 76]], "on_target", 2),
        (2, [[64, 65]], "on_target", 2),
        (2, [[91]], "awaiting_replicas", 2),
        (3, [[91, 91, 0]], "on_target", 3),
        (1, [[100]], "growing", 2),
        (8, [[100] * 8], "at_maximum", 8),
        (7, [[100] * 7], "growing", 8),
        (4, [[60] * 4], "on_target", 4),
        (4, [[20] * 4], "stabilizing", 4),
        (4, [[20] * 4, [20] * 4, []], "stabilizing", 4),
        (4, [[20] * 4, [70] * 4, [20] * 4], "stabilizing", 4),
        (4, [[20] * 4, [20] * 4, [20] * 4], "shrinking", 2),
        (8, [[0] * 8] * 3, "shrinking", 4),
        (4, [[20] * 3] * 3, "shrinking", 2),
        (2, [[30, 30]] * 3, "shrinking", 1),
        (2, [[30, 30], [30] * 4, [30] * 4], "stabilizing", 2),
        (1, [[0]] * 3, "at_minimum", 1),
    ],
)
def test_recommendation(replicas, minutes, state, want):
    found = recommend(RULE, replicas, 1, minutes)
    assert (found.state, found.replicas) == (state, want)


def test_one_step_at_most_doubles_the_replicas():
    rule = Autoscaling(max_replicas=100, gpu_utilization=10)
    assert recommend(rule, 1, 1, [[100]]).replicas == 4
    assert recommend(rule, 6, 1, [[100] * 6]).replicas == 12


def test_utilization_is_that_of_the_last_minute():
    assert recommend(RULE, 2, 1, [[90, 92], [0, 0]]).utilization == 91
    assert recommend(RULE, 2, 1, [[]]).utilization is None


@given(
    replicas=st.integers(1, 8),
    least=st.integers(1, 8),
    minutes=st.lists(st.lists(st.floats(0, 100), max_size=10), max_size=4),
)
def test_result_is_within_the_limits_and_changes_only_in_two_states(replicas, least, minutes):
    least = min(least, replicas)
    found = recommend(RULE, replicas, least, minutes)
    assert least <= found.replicas <= RULE.max_replicas
    assert (found.replicas > replicas) == (found.state is ScalingState.GROWING)
    assert (found.replicas < replicas) == (found.state is ScalingState.SHRINKING)


@pytest.mark.parametrize(
    ("task", "path"),
    [
        ({"resources": {"cpu": "1"}, "autoscaling": {"max_replicas": 4, "gpu_utilization": 70}}, ""),
        ({"autoscaling": {"max_replicas": 1, "gpu_utilization": 70}}, ".max_replicas"),
        ({"autoscaling": {"max_replicas": 4}}, ".gpu_utilization"),
        ({"autoscaling": {"max_replicas": 4, "gpu_utilization": 101}}, ".gpu_utilization"),
        ({"autoscaling": {"max_replicas": 10_001, "gpu_utilization": 70}}, ".max_replicas"),
        ({"partition_size": 1, "autoscaling": {"max_replicas": 4, "gpu_utilization": 70}}, ""),
    ],
)
def test_task_that_cannot_be_scaled_is_rejected(task, path):
    with pytest.raises(Invalid) as error:
        spec(**task)
    assert [problem.path for problem in error.value.problems] == [f"tasks.0.autoscaling{path}"]


MANIFEST = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: elastic}
spec:
  tasks:
  - name: worker
    replicas: 1
    template:
      metadata: {annotations: {hekla.io/autoscaling: "max-replicas=4, gpu-utilization=70"}}
      spec:
        containers: [{name: worker, command: [train], resources: {requests: {nvidia.com/gpu: 1}}}]
"""


def test_manifest_has_autoscaling_as_an_annotation():
    (task,) = formats.load(MANIFEST).spec.tasks
    assert task.autoscaling == Autoscaling(max_replicas=4, gpu_utilization=70)


@pytest.mark.parametrize("text", ["", "max-replicas=many", "max-replicas=4,max-replicas=5", "replicas=4"])
def test_annotation_that_says_anything_else_is_a_problem(text):
    with pytest.raises(Invalid) as error:
        formats.load(MANIFEST.replace("max-replicas=4, gpu-utilization=70", text))
    path = "spec.tasks[0].template.metadata.annotations.hekla.io/autoscaling"
    assert [problem.path for problem in error.value.problems] == [path]
