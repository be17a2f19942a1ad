"""The TensorFlow example: real workers find each other by TF_CONFIG and take the same steps."""

import pytest
from tests.examples.training import spec_of


def test_manifest_has_two_workers():
    spec = spec_of("tensorflow")
    assert {task.name: task.replicas for task in spec.tasks} == {"worker": 2}
    assert "tensorflow" in spec.plugins


@pytest.mark.thorough
def test_both_workers_learn_the_same_weights(run_example):
    with run_example("tensorflow") as run:
        assert set(run.exit_codes().values()) == {0}, run.log("worker", 0) + run.log("worker", 1)
        logs = [run.log("worker", index) for index in range(2)]
        assert ["worker 0 of 2" in logs[0], "worker 1 of 2" in logs[1]] == [True, True]
        losses = [[line for line in log.splitlines() if line.startswith("step ")] for log in logs]
        assert losses[0] == losses[1]
        assert len(losses[0]) == 6
        found = [next(line for line in log.splitlines() if line.startswith("weights")) for log in logs]
        assert found == ["weights 1.0000 2.0000 -1.0000 0.5000"] * 2
