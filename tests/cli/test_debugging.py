"""Failed pods in a shell: continue where one failed, keep it longer, delete it."""

import time

import pytest
import yaml
from tests.cli.conftest import Console
from tests.controller.conftest import LAST_SECONDS

from hekla.apps.jobs.models import FrozenPod

JOB = {
    "name": "broken",
    "keep_failed_seconds": 3600,
    "tasks": [{"name": "main", "command": ["false"], "resources": {"cpu": "1"}, "grace_seconds": 1}],
}


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_failed_pod_is_opened_kept_longer_and_deleted(console: Console, tmp_path) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB))
    assert console("job", "submit", tmp_path / "job.yaml").exit_code == 0
    deadline = time.monotonic() + LAST_SECONDS
    while not FrozenPod.objects.filter(size__isnull=False).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "“main-1” is not kept. Kept are: main-0." in console("job", "debug", "broken", "--pod", "main-1").output
    opened = console("job", "debug", "broken")
    assert "debug-broken-1 continues there." in opened.output
    assert "hekla ssh debug-broken-1" in opened.output
    assert "are kept until" in console("job", "keep", "broken", "48h").output
    assert console("job", "keep", "broken", "long").exit_code == 2
    assert "runs in these files. Abort it first." in console("job", "discard", "broken").output
    console("job", "abort", "debug-broken-1")
    while "are deleted" not in (found := console("job", "discard", "broken")).output:
        assert time.monotonic() < deadline, found.output
    assert "No failed pod of broken is kept." in console("job", "debug", "broken").output
