"""Batches on the command line."""

import json

import pytest
from tests.support.metrics import print_metrics

from hekla.apps.batches.models import BatchJob
from hekla.apps.jobs.models import Job

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


@pytest.fixture
def file(manifest):
    return manifest("train", command='[train, "--lr={{ lr }}"]')


def test_sweep_is_previewed_submitted_shown_and_stopped(console, file):
    assert "no batches" in console("batch", "list").output
    preview = console("batch", "submit", file, "-p", "lr=0.1,0.01", "--dry-run")
    assert "2 jobs would be submitted" in preview.output
    assert "train --lr=0.01" in preview.output
    assert "Submitted 2 jobs as train" in console("batch", "submit", file, "-p", "lr=0.1,0.01").output
    assert "train" in console("batch", "list").output
    output = console("batch", "show", "train").output
    assert "train-2" in output
    assert output.splitlines()[2].split() == ["NUMBER", "JOB", "PHASE", "lr"]
    assert "0.01" in output
    stopped = json.loads(console("batch", "stop", "train", "--json").output)
    assert set(stopped["phases"]) <= {"aborting", "aborted", "completed"}
    missing = console("batch", "show", "nothing")
    assert (missing.exit_code, "Unknown batch" in missing.output) == (1, True)


def test_rows_of_a_table_are_jobs(console, file, tmp_path):
    table = tmp_path / "runs.csv"
    table.write_text("lr\n3\n20\n")
    assert "train --lr=20" in console("batch", "submit", file, "--table", table, "--dry-run").output
    table.write_text("lr\n3,4\n")
    assert "runs.csv: Row 1 has 2 values" in console("batch", "submit", file, "--table", table).output


def test_random_sweep(console, file):
    console("batch", "submit", file, "-p", "lr=0.001..0.1 log", "--random", "3", "--seed", "5", "--name", "drawn")
    jobs = json.loads(console("batch", "show", "drawn", "--json").output)["jobs"]
    assert [0.001 <= float(job["parameters"]["lr"]) <= 0.1 for job in jobs] == [True] * 3


def test_file_of_many_jobs(console, tmp_path):
    path = tmp_path / "many.yaml"
    path.write_text("---\n".join(f"{{name: j{n}, tasks: [{{name: m, command: [ls]}}]}}\n" for n in (1, 2)))
    assert "--name" in console("batch", "submit", path).output
    assert "Submitted 2 jobs as many" in console("batch", "submit", path, "--name", "many").output


@pytest.mark.parametrize(
    ("options", "message"),
    [(["-p", "lr"], "is not in the form"), (["-p", "rate=1"], "Unknown parameter “lr”"), (["-p", "lr=1..2"], "random")],
)
def test_errors_are_printed(console, file, options, message):
    result = console("batch", "submit", file, *options)
    assert (result.exit_code, message in result.output) == (1, True)


def test_metrics_and_the_best_job_are_shown(console, file):
    console("batch", "submit", file, "-p", "lr=0.1,0.01", "--name", "lr")
    for member in BatchJob.objects.all():
        print_metrics(member.job, {"loss": [0.0, 9.0, float(member.number)]})
    Job.objects.update(phase="completed")
    lines = console("batch", "show", "lr").output.splitlines()
    assert lines[2].split() == ["NUMBER", "JOB", "PHASE", "lr", "loss"]
    assert [line.split()[-1] for line in lines[3:5]] == ["1", "2"]
    assert lines[3].startswith("*")
    assert lines[-1] == "Best job: lr-1 (loss 1)"
    assert "Best job: lr-2 (loss 2)" in console("batch", "show", "lr", "--metric", "loss", "--goal", "max").output
    assert console("batch", "show", "lr", "--value", "max").output.count(" 9\n") == 2
    unknown = console("batch", "show", "lr", "--metric", "accuracy")
    assert (unknown.exit_code, "has printed a metric" in unknown.output) == (1, True)


def test_jobs_are_compared(console, file):
    console("batch", "submit", file, "-p", "lr=0.1,0.01", "--name", "lr")
    assert "No metrics. A job reports metrics by printing" in console("job", "compare", "lr-1", "lr-2").output
    for member in BatchJob.objects.all():
        print_metrics(member.job, {"loss": [0.0, 9.0, float(member.number)], "acc": [0.5]})
    Job.objects.update(phase="completed")
    lines = console("job", "compare", "lr-2", "lr-1", "--metric", "loss").output.splitlines()
    assert lines[0].split()[:5] == ["NUMBER", "JOB", "PHASE", "lr", "acc"]
    assert [line.split()[-1] for line in lines[1:3]] == ["2", "1"]
    assert lines[2].startswith("*")
    assert lines[-1] == "Best job: lr-1 (loss 1)"
    found = json.loads(console("job", "compare", "lr-1", "lr-2", "--json").output)
    assert (found["jobs"][0]["metrics"]["loss"]["max_step"], found["varying"]) == (1, ["lr"])
    unknown = console("job", "compare", "lr-1", "lr-2", "--metric", "f1")
    assert (unknown.exit_code, "has printed a metric" in unknown.output) == (1, True)
