"""Batches on the command line."""

import json

import pytest

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
    assert "lr=0.01" in output
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
