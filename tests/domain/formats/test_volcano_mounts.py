"""Files of ConfigMaps in Volcano Jobs: they are mounted below one folder, the working folder."""

import pytest

from hekla.domain import formats
from hekla.domain.errors import Invalid

TASK = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a}
spec:
  tasks:
  - name: t
    template:
      spec:
        containers:
        - {command: [run], workingDir: %s, volumeMounts: [%s]}
        volumes:
        - {name: v, configMap: {name: m}}
        - {name: w, configMap: {name: n, items: [{key: f, path: deep/g}]}}
---
{kind: ConfigMap, metadata: {name: m}, data: {f: "1"}}
---
{kind: ConfigMap, metadata: {name: n}, data: {f: "2", unused: "3"}}
"""


@pytest.mark.parametrize(
    ("working_dir", "mounts", "files", "expected"),
    [
        ("", "{name: v, mountPath: /a}", {"f": "1"}, ""),
        ("/a", "{name: v, mountPath: /a}", {"f": "1"}, ""),
        ("/a/b", "{name: v, mountPath: /a}", {"f": "1"}, "b"),
        ("/a", "{name: v, mountPath: /a/b}", {"b/f": "1"}, ""),
        ("/z", "{name: v, mountPath: /a}", {"f": "1"}, "/z"),
        ("/a", "{name: v, mountPath: /a}, {name: w, mountPath: /a/c}", {"f": "1", "c/deep/g": "2"}, ""),
    ],
)
def test_mounted_files_are_in_the_working_folder(working_dir, mounts, files, expected):
    spec = formats.load(TASK % (f'"{working_dir}"', mounts)).spec
    assert (spec.files, spec.tasks[0].working_dir) == (files, expected)


@pytest.mark.parametrize(
    ("mounts", "path", "sentence"),
    [
        ("{name: v, mountPath: /a}, {name: w, mountPath: /b}", "volumeMounts[1].mountPath", "at /a or below"),
        ("{name: v, mountPath: /a/deep}, {name: v, mountPath: /a}, {name: w, mountPath: /a}", "mountPath", "/a/deep"),
    ],
)
def test_files_must_be_below_one_folder(mounts, path, sentence):
    with pytest.raises(Invalid) as raised:
        formats.load(TASK % ('""', mounts))
    assert raised.value.problems[0].path.endswith(path)
    assert sentence in raised.value.message


def test_two_files_cannot_have_one_path():
    text = (TASK % ('""', "{name: v, mountPath: /a}, {name: w, mountPath: /a}")).replace("deep/g", "f")
    with pytest.raises(Invalid, match="All pods of a job get the same files"):
        formats.load(text)
