"""Files of several documents on the command line."""

import json

import pytest
from tests.cli.test_schedules import CRON_JOB

from hekla.apps.jobs.models import Job
from hekla.apps.schedules.models import Schedule

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, command: ["cat", "a.txt"], workingDir: /w, volumeMounts: [{name: f, mountPath: /w}]}]
      volumes: [{name: f, configMap: {name: texts}}]
"""
TEXTS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: texts}
data: {a.txt: hello}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "all.yaml"
    path.write_text("---\n".join([TEXTS, JOB.replace("NAME", "first"), CRON_JOB, JOB.replace("NAME", "second")]))
    return path


def test_every_document_is_submitted(console, file):
    made = console("job", "submit", file)
    assert made.output == "job/first created\ncronjob/nightly created\njob/second created\n3 of 3 documents created.\n"
    assert made.exit_code == 0
    assert {job.name: job.spec["files"] for job in Job.objects.all()} == {
        "first": {"a.txt": "hello"},
        "second": {"a.txt": "hello"},
    }
    assert Schedule.objects.get().name == "nightly"


def test_dry_run_checks_every_document(console, file):
    checked = console("job", "submit", file, "--dry-run")
    assert checked.exit_code == 0
    assert "cronjob/nightly created (dry run)" in checked.output
    assert "3 of 3 documents valid. Nothing was submitted." in checked.output
    assert not Job.objects.exists()
    assert not Schedule.objects.exists()


def test_failing_document_names_its_number_and_hides_no_other(console, file):
    text = file.read_text().replace("0 2 * * *", "0 99 * * *")
    file.write_text(text + "---\nkind: Service\nmetadata: {name: web}\n---\nnothing\n")
    made = console("job", "submit", file)
    assert made.exit_code == 1
    assert "document 3: cronjob/nightly failed: spec.schedule: " in made.output
    assert "document 5: service/web failed: A “Service” cannot be submitted." in made.output
    assert "document 6: document failed: A “nothing” cannot be submitted." in made.output
    assert "job/second created\n" in made.output
    assert "2 of 5 documents created." in made.output
    again = console("job", "submit", file)
    assert "document 2: job/first failed: " in again.output


def test_results_as_json(console, file):
    file.write_text(file.read_text().replace("0 2 * * *", "x"))
    made = console("job", "submit", file, "--json")
    results = json.loads(made.stdout)
    assert [(one["number"], one["kind"], one["name"], bool(one["error"])) for one in results] == [
        (2, "job", "first", False),
        (3, "cronjob", "nightly", True),
        (4, "job", "second", False),
    ]
    assert made.exit_code == 1


def test_single_cronjob_becomes_a_schedule(console, file):
    file.write_text(CRON_JOB)
    assert console("job", "submit", file, "--dry-run").exit_code == 0
    assert not Schedule.objects.exists()
    assert "cronjob/nightly created" in console("job", "submit", file).output
    assert Schedule.objects.count() == 1


def test_number_of_documents_is_limited(console, file):
    file.write_text("---\n".join(JOB.replace("NAME", f"job-{number}") for number in range(101)))
    refused = console("job", "submit", file)
    assert (refused.exit_code, "At most 100" in refused.output) == (1, True)
    assert not Job.objects.exists()


@pytest.mark.parametrize("option", [["--watch"], ["--name", "other"]])
def test_options_for_one_job_are_refused(console, file, option):
    refused = console("job", "submit", file, *option)
    assert (refused.exit_code, "need a file with one job" in refused.output) == (1, True)
