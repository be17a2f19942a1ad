"""The rendezvous example: equals that find one another at the master's address hold the same weights to the end."""

import numpy as np
import pytest
from tests.examples.training import spec_of


def test_the_manifest_starts_all_three_or_none():
    spec = spec_of("rendezvous")
    assert {task.name: task.replicas for task in spec.tasks} == {"master": 1, "worker": 2}
    assert spec.min_available == 3
    assert "pytorch" in spec.plugins


def test_it_learns_to_tell_tumours_apart(run_example):
    with run_example("rendezvous") as run:
        assert set(run.exit_codes().values()) == {0}, run.log("master")
        losses, accuracies = run.figures("loss", "master"), run.figures("accuracy", "master")
        assert losses == sorted(losses, reverse=True)
        assert accuracies[-1] >= 0.95
        assert f"held-out accuracy {accuracies[-1]:.4f}" in run.log("master")
        with np.load(run.place("master") / "model.npz", allow_pickle=False) as model:
            assert model["weights"].shape == (31,)
        assert_divided([run.log("master"), run.log("worker", 0), run.log("worker", 1)])


def assert_divided(logs):
    """Each says how many samples it has, and how many there are."""
    told = [log.partition(" of 3: ")[2].split() for log in logs]
    parts = [int(words[0]) for words in told]
    assert {sum(parts)} == {int(words[2]) for words in told}
    assert max(parts) - min(parts) <= 1


@pytest.mark.parametrize("lost", [("worker", 1), ("master", 0)])
def test_when_one_process_is_killed_the_others_end_and_say_so(run_example, until, lost):
    with run_example("rendezvous") as run:
        until(lambda: run.figures("loss", "master"))
        run.process(*lost).kill()
        codes = run.exit_codes()
        others = [place for place in codes if place != lost]
        assert all(codes[place] == 1 for place in others), codes
        assert all("lost a peer" in run.log(*place) for place in others)
