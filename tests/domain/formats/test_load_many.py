"""Reading several jobs from one text."""

import pytest

from hekla.domain import formats
from hekla.domain.errors import Invalid

VOLCANO = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: one}
spec:
  tasks:
    - name: main
      template:
        spec:
          containers: [{command: [cat, a.txt], workingDir: /w, volumeMounts: [{name: f, mountPath: /w}]}]
          volumes: [{name: f, configMap: {name: files}}]
"""
TORCH = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: two}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, command: [python, t.py]}]}}}
"""
SPEC = "{name: three, tasks: [{name: main, command: [ls]}]}\n"
FILES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: files}\ndata: {a.txt: hello}\n"


def text(*documents: str) -> str:
    return "---\n".join(documents)


def test_jobs_of_all_kinds_are_read_in_order() -> None:
    found = formats.load_many(text(VOLCANO, TORCH, SPEC, FILES))
    assert [loaded.spec.name for loaded in found] == ["one", "two", "three"]
    assert found[0].spec.files == {"a.txt": "hello"}
    assert found[1].spec.files == {}


def test_problems_name_their_document() -> None:
    wrong = text(VOLCANO.replace("main", "Main"), SPEC.replace("[ls]", "[]"), "kind: Pod\n", "- 1\n")
    with pytest.raises(Invalid) as raised:
        formats.load_many(wrong)
    paths = [problem.path for problem in raised.value.problems]
    assert paths[0] == "document 1.spec.tasks[0].name"
    assert "document 2.tasks.0.command" in paths
    assert "document 3" in paths
    assert "document 4" in paths


@pytest.mark.parametrize(
    ("manifest", "message"), [("", "0 jobs"), (FILES, "0 jobs"), (text(*[SPEC] * 1001), "1,001 jobs")]
)
def test_no_job_or_too_many_are_refused(manifest: str, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        formats.load_many(manifest)
