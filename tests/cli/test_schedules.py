"""Schedules on the command line."""

import json

import pytest

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)
CRON_JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 2 * * *"
  jobTemplate:
    spec: {tasks: [{name: main, template: {spec: {containers: [{name: m, command: ["true"]}]}}}]}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "nightly.yaml"
    path.write_text(CRON_JOB)
    return path


def test_schedule_is_created_run_suspended_and_deleted(console, file):
    assert "No schedules" in console("schedule", "list").output
    assert "nightly runs next at" in console("schedule", "create", file).output
    assert "0 2 * * *" in console("schedule", "list").output
    assert "Submitted nightly-" in console("schedule", "run", "nightly").output
    assert "No runs yet" not in console("schedule", "show", "nightly").output
    assert "is suspended" in console("schedule", "suspend", "nightly").output
    assert "Suspended" in console("schedule", "show", "nightly").output
    assert "runs next at" in console("schedule", "resume", "nightly").output
    assert json.loads(console("schedule", "show", "nightly", "--json").output)["name"] == "nightly"
    assert "is deleted" in console("schedule", "delete", "nightly").output
    missing = console("schedule", "show", "nightly")
    assert (missing.exit_code, "Unknown schedule" in missing.output) == (1, True)


def test_document_is_accepted(console, tmp_path):
    path = tmp_path / "document.yaml"
    path.write_text("{name: often, cron: '*/5 * * * *', job: {tasks: [{name: main, command: [ls]}]}}")
    assert console("schedule", "create", path).exit_code == 0
    assert "*/5 * * * *" in console("schedule", "list").output


def test_errors_have_a_path(console, file):
    file.write_text(CRON_JOB.replace("0 2 *", "0 25 *"))
    result = console("schedule", "create", file)
    assert result.exit_code == 1
    assert "is not a schedule that can be made" in result.output
    assert "spec.schedule: hour" in result.output
