"""Queues from the command line."""

import json

import pytest

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)
QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: vision}
spec: {weight: 3, type: x}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "queue.yaml"
    path.write_text(QUEUE)
    return path


def test_a_queue_is_made_by_those_who_may(console, file, world):
    refused = console("submit", file)
    assert refused.exit_code == 1
    assert "vision" not in console("queues").output
    world.alice.platform_role = "operator"
    world.alice.save()
    made = console("submit", file).output
    assert "Note: spec.type: not honoured" in made
    assert "Queue vision was made: http" in made
    assert "vision" in [queue["name"] for queue in json.loads(console("queues", "--json").output)]
    assert "is called “vision” already" in console("submit", file).output


def test_options_for_jobs_are_not_for_queues(console, file):
    refused = console("submit", file, "--dry-run")
    assert (refused.exit_code, "as its manifest says" in refused.output) == (1, True)


def test_a_queue_beside_a_job_is_named(console, manifest, tmp_path):
    both = tmp_path / "both.yaml"
    both.write_text(QUEUE + "---\n" + manifest().read_text())
    told = console("submit", both).output
    assert "document 1: not honoured: queues are made by operators" in told
    assert "Submitted talk" in told
