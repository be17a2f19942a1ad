"""The digits example keeps the promise of the home page: real processes train on real scans over real sockets."""

import csv

import numpy as np
import pytest
from tests.examples.training import spec_of

from hekla.pages.home import examples


def test_manifest_is_a_gang_of_three():
    spec = spec_of("digits")
    assert {task.name: task.replicas for task in spec.tasks} == {"ps": 1, "worker": 2}
    assert spec.min_available == 3
    assert {"env", "svc", "tensorflow"} <= set(spec.plugins)


def test_manifest_contains_the_program():
    assert list(examples.Example("digits").spec().files) == ["train.py"]


@pytest.mark.thorough
def test_digits_training_reaches_its_accuracy(run_example):
    with run_example("digits") as run:
        assert set(run.exit_codes().values()) == {0}, run.log("ps")
        losses, accuracies = run.metric("loss", "ps"), run.metric("accuracy", "ps")
        assert losses[-1] < losses[0] / 10
        assert accuracies[-1] >= 0.95
        assert f"held-out accuracy {accuracies[-1]:.4f}" in run.log("ps")
        with np.load(run.folder_of("ps") / "model.npz", allow_pickle=False) as model:
            assert [model[name].shape for name in model.files] == [(64, 64), (64,), (64, 10), (10,)]
        with (run.folder_of("ps") / "loss.csv").open(newline="") as file:
            steps = [int(row["step"]) for row in csv.DictReader(file)]
        assert steps == list(range(1, len(steps) + 1))


@pytest.mark.parametrize("lost", [("worker", 1), pytest.param(("ps", 0), marks=pytest.mark.thorough)])
def test_killed_process_ends_the_others_with_a_message(run_example, until, lost):
    with run_example("digits") as run:
        until(lambda: run.metric("loss", "ps"))
        run.process(*lost).kill()
        codes = run.exit_codes()
        survivors = [replica for replica in codes if replica != lost]
        assert all(codes[replica] == 1 for replica in survivors), codes
        assert all("lost a peer" in run.log(*replica) for replica in survivors)
