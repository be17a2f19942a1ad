"""The digits example does what the home page promises: real processes learn real scans over real sockets."""

import csv

import numpy as np
import pytest
from tests.examples.training import spec_of

from hekla.pages.home import examples


def test_the_manifest_starts_all_three_or_none():
    spec = spec_of("digits")
    assert {task.name: task.replicas for task in spec.tasks} == {"ps": 1, "worker": 2}
    assert spec.min_available == 3
    assert {"env", "svc", "tensorflow"} <= set(spec.plugins)


def test_the_program_goes_along_with_the_manifest():
    assert list(examples.Example("digits").spec().files) == ["train.py"]


def test_it_learns_to_read(run_example):
    with run_example("digits") as run:
        assert set(run.exit_codes().values()) == {0}, run.log("ps")
        losses, accuracies = run.figures("loss", "ps"), run.figures("accuracy", "ps")
        assert losses[-1] < losses[0] / 10
        assert accuracies[-1] >= 0.95
        assert f"held-out accuracy {accuracies[-1]:.4f}" in run.log("ps")
        with np.load(run.place("ps") / "model.npz", allow_pickle=False) as model:
            assert [model[name].shape for name in model.files] == [(64, 64), (64,), (64, 10), (10,)]
        with (run.place("ps") / "loss.csv").open(newline="") as file:
            steps = [int(row["step"]) for row in csv.DictReader(file)]
        assert steps == list(range(1, len(steps) + 1))


@pytest.mark.parametrize("lost", [("worker", 1), ("ps", 0)])
def test_when_one_process_is_killed_the_others_end_and_say_so(run_example, until, lost):
    with run_example("digits") as run:
        until(lambda: run.figures("loss", "ps"))
        run.process(*lost).kill()
        codes = run.exit_codes()
        others = [place for place in codes if place != lost]
        assert all(codes[place] == 1 for place in others), codes
        assert all("lost a peer" in run.log(*place) for place in others)
