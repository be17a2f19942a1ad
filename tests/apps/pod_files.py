"""A running pod of a local cluster and its folder, without a process."""

from pathlib import Path

import pytest
from tests.apps.conftest import People

from hekla.apps.jobs.models import Pod
from hekla.lib import clock


@pytest.fixture
def pod(people: People, settings: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    """A pod of a local cluster, and files that it wrote, with names that try to be markup and terminal codes."""
    settings.HEKLA_HOME = tmp_path  # type: ignore[attr-defined]
    people.cluster.kind, people.cluster.config = "local", {}
    people.cluster.save()
    job, now = people.submit("writer"), clock.now()
    facts = {"slot": 0, "version": 1, "address": "127.0.0.1", "created_at": now, "started_at": now, "phase": "running"}
    found = Pod.objects.create(job=job, task="main", index=0, attempt=0, **facts)
    key = f"{job.uid.hex}-main-0-0"
    work = tmp_path / "local" / people.cluster.name / "pods" / job.uid.hex / key / "work"
    (work / "out").mkdir(parents=True)
    (work / "out" / "<b>& ü.html").write_text("<script>alert(1)</script>")
    (work / "a\x1b[31mred").write_text("x")
    (work / "\u202egpj.exe").write_text("x")
    (work / "two\nlines").write_text("x")
    (work / "passwd").symlink_to("/etc/passwd")
    return found


def work_of(pod: Pod, home: Path) -> Path:
    key = f"{pod.job.uid.hex}-main-0-0"
    return home / "local" / pod.job.cluster.name / "pods" / pod.job.uid.hex / key / "work"
