"""`hekla job preview` and `hekla bench whatif`."""

import json
import time

import pytest
from tests.controller.conftest import LAST_SECONDS

from hekla.apps.jobs.models import Job
from hekla.client import Client


@pytest.mark.parametrize(
    ("replicas", "messages"), [(2, ["Would start now", "2 pods on node "]), (9, ["Cannot start", "worker.replicas=4"])]
)
def test_preview_of_a_job(console, tmp_path, replicas, messages):
    task = {"name": "worker", "replicas": replicas, "command": ["true"], "resources": {"cpu": "1"}}
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"name": "draft", "tasks": [task]}))
    result = console("job", "preview", file)
    assert result.exit_code == 0
    for message in messages:
        assert message in result.output
    assert json.loads(console("job", "preview", file, "--json").output)["verdict"]
    assert not Job.objects.exists()


def test_bench_whatif(console):
    figures = json.loads(console("bench", "whatif", "--jobs", "3", "--warm-up", "0", "--json").output)
    assert figures["small_ms_median"] > 0


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_pending_job_shows_its_position(console, tmp_path):
    task = {"name": "worker", "command": ["sleep", "60"], "resources": {"cpu": "3"}}
    file = tmp_path / "job.json"
    for name in ("holds", "stays"):
        file.write_text(json.dumps({"name": name, "tasks": [task]}))
        assert console("job", "submit", file).exit_code == 0
    with Client(console.url, console.token) as client:
        client.wait("holds", until={"running"}, timeout=30)
    deadline = time.monotonic() + LAST_SECONDS
    while "Start      Position in its queue: 1 of 1." not in (output := console("job", "show", "stays").output):
        assert time.monotonic() < deadline, output
    assert "Pending    " in output
    assert "Start" not in console("job", "show", "holds").output.partition("POD")[0].replace("Started", "")
    console("job", "abort", "holds")
