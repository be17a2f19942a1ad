"""`hekla job convert`: manifest on stdout, notes on stderr, and the exit status."""

import pytest
import yaml
from tests.cli.conftest import hekla

from hekla.domain import formats
from hekla.domain.jobspec import JobSpec

TFJOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: digits}
spec:
  tfReplicaSpecs:
    PS: {replicas: 1, template: {spec: {containers: [{name: tensorflow, command: [ps]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, command: [work]}]}}}
"""
SUSPENDED = TFJOB.replace("spec:\n", "spec:\n  runPolicy: {suspend: true}\n", 1)


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "job.yaml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("kind", ["volcano", "tfjob", "TFJob", "jobspec"])
def test_lossless_conversion(file, kind):
    result = hekla("job", "convert", file(TFJOB), "--to", kind)
    assert (result.exit_code, result.stderr) == (0, "")
    document = yaml.safe_load(result.stdout)
    spec = JobSpec.parse(document) if kind == "jobspec" else formats.load(result.stdout).spec
    assert spec == formats.load(TFJOB).spec


def test_jobspec_document_is_converted(file):
    document = hekla("job", "convert", file(TFJOB), "--to", "jobspec").stdout
    assert (
        formats.load(hekla("job", "convert", file(document), "--to", "tfjob").stdout).spec == formats.load(TFJOB).spec
    )


def test_dash_reads_standard_input():
    result = hekla("job", "convert", "-", "--to", "volcano", input=TFJOB)
    assert formats.load(result.stdout).spec == formats.load(TFJOB).spec


def test_losses_are_noted_on_stderr(file):
    spec = JobSpec.parse(
        {"name": "a", "tasks": [{"name": "main", "replicas": 2, "command": ["run"]}], "min_success": 1}
    )
    result = hekla("job", "convert", file(formats.dump(spec)), "--to", "tfjob")
    assert (result.exit_code, yaml.safe_load(result.stdout)["kind"]) == (0, "TFJob")
    assert "Note: min_success: a TFJob does not support this (1).\n" in result.stderr
    result = hekla("job", "convert", file(SUSPENDED), "--to", "volcano")
    assert (result.exit_code, yaml.safe_load(result.stdout)["kind"]) == (0, "Job")
    assert "Note: spec.runPolicy.suspend: ignored" in result.stderr


@pytest.mark.parametrize(("text", "status"), [(TFJOB, 0), (SUSPENDED, 1)])
def test_strict_fails_on_a_loss_and_writes_nothing(file, text, status):
    result = hekla("job", "convert", file(text), "--to", "volcano", "--strict")
    assert (result.exit_code, result.stdout == "") == (status, status == 1)


@pytest.mark.parametrize(
    ("text", "kind", "status", "message"),
    [
        (TFJOB, "job", 1, "cannot be written as job:\n  tasks: A Kubernetes Job has one pod template"),
        (TFJOB, "cronjob", 2, "is not one of"),
        ("kind: Service", "volcano", 1, "has no job"),
        (
            TFJOB.replace("replicas: 2", "replicas: x"),
            "volcano",
            1,
            "tfReplicaSpecs.Worker.replicas: Must be an integer",
        ),
    ],
)
def test_errors_are_printed(file, text, kind, status, message):
    result = hekla("job", "convert", file(text), "--to", kind)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in result.stderr


JOBCONFIG = """
protocolVersion: 2
name: digits
type: job
secrets: {token: open-sesame}
prerequisites: [{type: dockerimage, name: i, uri: image}]
taskRoles:
  main:
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: [run <% $secrets.token %>]
"""


def test_jobconfig_round_trips_without_secrets(file):
    result = hekla("job", "convert", file(JOBCONFIG), "--to", "volcano")
    assert (result.exit_code, result.stderr) == (0, "Note: secrets: their values are not written: token.\n")
    back = hekla("job", "convert", file(result.stdout), "--to", "openpai")
    assert (back.exit_code, back.stderr) == (0, "")
    assert formats.load(back.stdout).spec == formats.load(JOBCONFIG).spec
    assert "sesame" not in result.stdout + back.stdout


def test_conversion_to_jobconfig_notes_losses(file):
    result = hekla("job", "convert", file(TFJOB), "--to", "openpai")
    document = yaml.safe_load(result.stdout)
    assert document["taskRoles"]["worker"]["commands"] == ["work"]
    assert "Note: plugins.tensorflow: a JobConfig does not support this.\n" in result.stderr
