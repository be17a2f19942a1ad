"""The rendezvous example: equal peers meet at the master's address and keep the same weights to the end."""

import numpy as np
import pytest
from tests.examples.training import spec_of


def test_manifest_is_a_gang_of_three():
    spec = spec_of("rendezvous")
    assert {task.name: task.replicas for task in spec.tasks} == {"master": 1, "worker": 2}
    assert spec.min_available == 3
    assert "pytorch" in spec.plugins


def test_rendezvous_training_reaches_its_accuracy(run_example):
    with run_example("rendezvous") as run:
        assert set(run.exit_codes().values()) == {0}, run.log("master")
        losses, accuracies = run.metric("loss", "master"), run.metric("accuracy", "master")
        assert losses == sorted(losses, reverse=True)
        assert accuracies[-1] >= 0.95
        assert f"held-out accuracy {accuracies[-1]:.4f}" in run.log("master")
        with np.load(run.folder_of("master") / "model.npz", allow_pickle=False) as model:
            assert model["weights"].shape == (31,)
        assert_samples_are_divided([run.log("master"), run.log("worker", 0), run.log("worker", 1)])


def assert_samples_are_divided(logs):
    """Assert that the processes log equal shares of all samples."""
    counts = [log.partition(" of 3: ")[2].split() for log in logs]
    parts = [int(words[0]) for words in counts]
    assert {sum(parts)} == {int(words[2]) for words in counts}
    assert max(parts) - min(parts) <= 1


@pytest.mark.thorough  # that of the digits ends in the same way
@pytest.mark.parametrize("lost", [("worker", 1), pytest.param(("master", 0), marks=pytest.mark.thorough)])
def test_killed_process_ends_the_others_with_a_message(run_example, until, lost):
    with run_example("rendezvous") as run:
        until(lambda: run.metric("loss", "master"))
        run.process(*lost).kill()
        codes = run.exit_codes()
        survivors = [replica for replica in codes if replica != lost]
        assert all(codes[replica] == 1 for replica in survivors), codes
        assert all("lost a peer" in run.log(*replica) for replica in survivors)
