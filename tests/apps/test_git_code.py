"""Code from a git address: pods clone it before their command, and the form shows the command alone."""

import subprocess
from pathlib import Path

import pytest
from django.http import QueryDict
from tests.apps.test_submission import form_of, minimal_form, post_data

from hekla.domain.jobspec import JobSpec
from hekla.pages.job_forms.submission_form import InitialValues
from hekla.pages.submit.form_mapping import filled

ADDRESS = "https://git.example.org/team/code.git"
GIT = """#!/bin/sh
echo "$GIT_ALLOW_PROTOCOL $*" > arguments
for last; do :; done
mkdir -p "$last/.git"; echo "echo ran in \\$PWD with \\$*" > "$last/run.sh"
"""


def sent(**changes: str) -> QueryDict:
    data = QueryDict(mutable=True)
    data.update(minimal_form(**{"tasks-0-command": "sh run.sh 'a b'", "git_address": ADDRESS} | changes))
    return data


def spec_of(data: QueryDict) -> JobSpec:
    spec = form_of(data, InitialValues()).spec()
    assert spec is not None
    return spec


@pytest.mark.parametrize("revision", ["", "v1.2"])
def test_pod_clones_the_code_once_and_runs_the_command_in_it(tmp_path: Path, revision: str) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(GIT)
    (tmp_path / "bin" / "git").chmod(0o755)
    command = spec_of(sent(git_revision=revision)).tasks[0].command
    path = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    for _start in range(2):
        done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, check=True)
        assert done.stdout == f"ran in {tmp_path / 'code'} with a b\n"
        branch = f" --branch {revision}" if revision else ""
        assert (tmp_path / "arguments").read_text() == f"https clone --quiet --depth 1{branch} -- {ADDRESS} .code\n"
        (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexit 1\n")  # a restart finds the code there


def test_other_content_of_the_folder_is_not_run_instead(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").touch(0o755)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "run.sh").write_text("echo other\n")
    path = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    command = spec_of(sent()).tasks[0].command
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "The folder code has other content. Nothing is cloned.\n"


def test_form_shows_the_address_and_the_command_alone() -> None:
    spec = spec_of(sent(git_revision="main"))
    first = filled(spec)
    assert (first.job["git_address"], first.job["git_revision"]) == (ADDRESS, "main")
    assert first.tasks[0]["command"] == "sh run.sh 'a b'"
    assert spec_of(post_data(form_of(None, first))) == spec
    other = spec.tasks[0].model_copy(update={"name": "other", "command": ("true",)})
    mixed = spec.model_copy(update={"tasks": (*spec.tasks, other)})
    assert filled(mixed).job["git_address"] == ""


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("git_address", "http://git.example.org/code.git"),
        ("git_address", "https://me:secret@git.example.org/code.git"),
        ("git_address", "https://git.example.org/code.git --upload-pack=x"),
        ("git_address", "ext::sh -c id"),
        ("git_revision", "--upload-pack=x"),
    ],
)
def test_other_addresses_are_refused(field: str, typed: str) -> None:
    form = form_of(sent(**{field: typed}), InitialValues())
    assert form.spec() is None
    assert [*form.problems] == [f"id_{field}"]
