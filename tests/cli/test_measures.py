"""GPU time on the command line, of a job that the controller runs on a node with GPUs."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from tests.controller.conftest import SIZE, World, operated

from hekla.apps.measures import services
from hekla.controller import queue_meter
from hekla.lib import clock

WITH_GPUS = {"name": "n", "allocatable": {**SIZE, "nvidia.com/gpu": "4"}, "labels": {"nvidia.com/gpu.product": "A100"}}

TRAINING = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  tasks:
    - name: main
      replicas: 1
      template:
        spec:
          containers: [{name: c, command: ["true"], resources: {requests: {cpu: 1, nvidia.com/gpu: 3}}}]
"""


@pytest.fixture
def world(transactional_db: None, settings: Any, tmp_path: Any) -> Iterator[World]:
    with operated([WITH_GPUS], settings, tmp_path) as made:
        yield made


def test_gpu_time_of_a_job_that_runs(console: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the submission to the tables, then derived again from the log and the rows."""
    monkeypatch.setattr(queue_meter, "LOOK_EVERY", timedelta())
    assert "No queue is measured yet." in console("measures", "queues", "--cluster", "simulated").output
    assert "No GPU time is measured yet." in console("measures", "gpu-time", "--cluster", "simulated").output
    job = tmp_path / "job.yaml"
    job.write_text(TRAINING)
    console("job", "submit", job)
    console("job", "watch", "train")
    services.roll_up(now=clock.now() + timedelta(minutes=3), most_seconds=60)
    words = ("measures", "gpu-time", "--cluster", "simulated", "--period", "hour", "--by", "model")
    text = console(*words).output
    assert "The cluster is simulated." in text
    assert "A100" in text
    found = json.loads(console(*words, "--json").output)
    assert found["gpu_seconds"]["unmeasured"] > 0
    assert found["gpu_seconds"]["free"] > found["gpu_seconds"]["unmeasured"]
    services.count_jobs(now=clock.now(), most_seconds=60)
    waiting = ("measures", "waiting", "--cluster", "simulated", "--by", "person")
    assert "WAITING NOW" in console(*waiting).output
    counts = json.loads(console(*waiting, "--json").output)["total"]["counts"]
    assert (counts["submitted"], counts["started"]) == (1, 1)
    assert "No job failed." in console("measures", "failures", "--cluster", "simulated").output
    assert re.search(r"completed +\d+ +0\n", console("measures", "overview", "--cluster", "simulated").output)
    assert "No open sessions." in console("measures", "sessions", "--cluster", "simulated").output
    out = StringIO()
    call_command("rebuild_measures", stdout=out)
    assert out.getvalue().startswith("Hours computed again: ")
    assert json.loads(console(*words, "--json").output)["gpu_seconds"] == found["gpu_seconds"]
    words = ("measures", "queues", "--cluster", "simulated", "--period", "hour")
    assert re.search(r"default +0\.\d", console(*words).output)
    (queue,) = json.loads(console(*words, "--json").output)["queues"]
    assert queue["gpu_seconds"]["allocated"] > 0
    assert "The cluster has 4 GPU." in console("queue", "share", "default").output
