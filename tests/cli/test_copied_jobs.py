"""The job of the submission form, copied as a command, a request and a program: each submits that job."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.test_submission import minimal_form
from tests.cli.conftest import Console

from hekla.apps.jobs.models import Job

pytestmark = pytest.mark.django_db(transaction=True)

COMMAND = "sh -c 'echo \"$HOME\" `date` it'\"'\"'s; echo END'"
# Shows the words and the input of a request, with which the shell calls curl.
CURL = 'curl() { printf \'%s\\0\' "$@" -- "$(cat)"; }\n'


def copied(console: Console, **changes: str) -> dict[str, str]:
    """The copies by title, for this console's address."""
    browser = Client()
    browser.force_login(console.world.alice)
    host = console.url.removeprefix("http://")
    form = minimal_form(**{"tasks-0-command": COMMAND, "files-TOTAL_FORMS": "1", "files-0-name": "a.txt"} | changes)
    page = browser.post(
        reverse("jobs:submit"), form | {"do": "copy", "files-0-text": "END\n'x'\n"}, headers={"host": host}
    )
    return {copy.title: copy.text for copy in page.context["equivalents"]}


def run(console: Console, tmp_path: Path, *words: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"PATH": path, "HEKLA_SERVER": console.url, "HEKLA_TOKEN": console.token, "HOME": str(tmp_path)}
    made = subprocess.run(words, env=os.environ | own, cwd=tmp_path, capture_output=True, text=True, check=True)
    return made.stdout


def without_name(spec: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name != "name"}


def test_each_copy_submits_the_job_of_the_form(console: Console, tmp_path: Path) -> None:
    run(console, tmp_path, "bash", "-c", copied(console, name="by-command")["Command line"])
    run(console, tmp_path, sys.executable, "-c", copied(console, name="by-program")["Python"])
    *words, _end, document = run(
        console, tmp_path, "bash", "-c", CURL + copied(console, name="by-request")["REST"]
    ).split("\0")[:-1]
    address = next(word for word in words if word.startswith("http"))
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    assert httpx2.post(address, headers=headers, json=json.loads(document)).status_code == 201
    specs = {job.name: without_name(job.spec) for job in Job.objects.all()}
    assert set(specs) == {"by-command", "by-program", "by-request"}
    assert specs["by-command"] == specs["by-program"] == specs["by-request"]
    task = specs["by-request"]["tasks"][0]
    assert task["command"] == ["sh", "-c", 'echo "$HOME" `date` it\'s; echo END']
    assert specs["by-request"]["files"] == {"a.txt": "END\n'x'\n"}
