"""Metrics of TensorBoard event files: read in the background, and compared beside those in logs."""

import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from tests.apps.conftest import People
from tests.apps.pod_files import pod, work_of
from tests.support.event_files import scalars

from hekla.apps.accounts.models import User
from hekla.apps.job_metrics import selectors
from hekla.apps.job_metrics.models import EventMetrics, MetricLog
from hekla.apps.jobs.models import Pod
from hekla.apps.usage.models import JobFolder
from hekla.controller import event_files, job_metrics
from hekla.lib import clock

__all__ = ["pod"]
As = Callable[[User], Client]


@pytest.fixture
def runs(pod: Pod, tmp_path: Path) -> Path:
    """A folder of the pod for event files. The log has one metric, and the pod is on the work list."""
    folder = work_of(pod, tmp_path) / "runs" / "one"
    folder.mkdir(parents=True)
    (folder.parents[2] / "log").write_text("::metric step=1 loss=9\n")
    MetricLog.objects.create(pod=pod, job=pod.job, due_at=clock.now())
    return folder


def read(*, minutes: int = 0) -> int:
    now = clock.now() + timedelta(minutes=minutes)
    EventMetrics.objects.update(due_at=now)
    job_metrics.read_metrics(now=now)
    return event_files.read_event_files(now=now)


def test_files_are_found_and_followed(people: People, as_: As, pod: Pod, runs: Path) -> None:
    file, at = runs / "events.out.tfevents.1", pod.started_at.timestamp()
    content = scalars("loss", 3.0, 2.0, at=at) + scalars("accuracy", 0.5, at=at + 60)
    file.write_bytes(content[:-5])
    assert read() == 1
    figures = selectors.figures_of([pod.job_id])[pod.job_id]
    assert set(figures) == {"loss"}
    assert JobFolder.objects.get().job_id == pod.job_id  # its files are measured from now on
    assert figures["loss"]["last"] == 9.0  # the log counts first
    file.write_bytes(content)
    (runs / "validation").mkdir()
    (runs / "validation" / "events.out.tfevents.2").write_bytes(scalars("loss", 4.0))
    read(minutes=2)
    figures = selectors.figures_of([pod.job_id])[pod.job_id]
    assert {name: one["last"] for name, one in figures.items()} == {
        "loss": 9.0,
        "accuracy": 0.5,
        "validation/loss": 4.0,
    }
    assert json.loads(selectors.points_of([pod.job_id], "accuracy")[pod.job_id])["seconds"] == [60.0, 60.0, 60.0, 60.0]
    answer = as_(people.bob).get(f"/api/v1/jobs/compare?job={pod.job.uid}")
    assert "validation/loss" in answer.content.decode()
    assert read(minutes=3) == 0  # nothing is new


def test_ended_pod_is_read_to_the_end(pod: Pod, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "_PART_BYTES", 100)
    (runs / "events.out.tfevents.1").write_bytes(scalars("a", *range(100)))
    Pod.objects.filter(pk=pod.pk).update(phase="succeeded", finished_at=clock.now())
    read()
    row = EventMetrics.objects.get()
    assert (row.is_complete, row.summary["a"]["count"]) == (True, 100)


def test_pod_without_files_leaves_no_row(pod: Pod, runs: Path) -> None:
    assert read() == 0
    row = EventMetrics.objects.get()
    assert row.due_at > clock.now()
    Pod.objects.filter(pk=pod.pk).update(phase="failed", finished_at=clock.now())
    read()
    assert not EventMetrics.objects.exists()


def test_same_tag_in_two_folders_makes_two_metrics(pod: Pod, runs: Path) -> None:
    for folder in ("b", "c", "d"):
        (runs / folder).mkdir()
        (runs / folder / "events.out.tfevents.1").write_bytes(scalars("a", 1.0, 2.0))
    read()
    summary = EventMetrics.objects.get().summary
    assert {name: one["count"] for name, one in summary.items()} == {"a": 2, "a (c)": 2, "a (d)": 2}


def test_any_tag_has_a_curve(people: People, as_: As, pod: Pod, runs: Path) -> None:
    tags = ["0", "9" * 25, "%s", "{a,b}", "<b>\"'"]
    (runs / "events.out.tfevents.1").write_bytes(b"".join(scalars(tag, 1.0, 2.0) for tag in tags))
    read()
    for tag in tags:
        facts = {"job": pod.job.uid, "metric": tag, "points": "true"}
        (curve,) = as_(people.bob).get("/api/v1/jobs/compare", facts).json()["curves"]
        assert curve["values"][-1] == 2.0, tag


def test_hostile_files_are_left(pod: Pod, runs: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.tfevents").write_bytes(scalars("secret", 1.0))
    (runs / "link.tfevents").symlink_to(tmp_path / "secret.tfevents")
    os.mkfifo(runs / "pipe.tfevents")
    (runs / "junk.tfevents").write_bytes(b"\xff" * 10_000)
    with (runs / "hole.tfevents").open("wb") as file:
        file.truncate(2**40)
    (runs / "good.tfevents").write_bytes(b"".join(scalars(f"m{number}", 1.0) for number in range(80)))
    read()
    row = EventMetrics.objects.get()
    assert (len(row.summary), "secret" in row.summary) == (50, False)
    assert {path.rpartition("/")[2]: broken for path, (_offset, broken) in row.files.items()} == {
        "junk.tfevents": 1, "hole.tfevents": 1, "good.tfevents": 0,
    }  # fmt: skip


def test_failure_and_expensive_files_do_not_come_back_at_once(
    pod: Pod, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_files, "_PART_BYTES", 100)
    monkeypatch.setattr(event_files.event_files, "_EXPENSIVE_SECONDS", -1.0)
    monkeypatch.setattr(event_files.event_files, "_REST", 10**6)
    (runs / "events.out.tfevents.1").write_bytes(scalars("a", *range(10)))
    read()
    row = EventMetrics.objects.get()
    assert (row.summary["a"]["count"] < 10, row.due_at > clock.now()) == (True, True)
    monkeypatch.setattr(event_files.event_files, "store", lambda *_arguments, **_more: 1 / 0)
    read()
    assert EventMetrics.objects.get().due_at > clock.now() + timedelta(minutes=9)


def test_faster_reader_wins(pod: Pod, runs: Path) -> None:
    (runs / "events.out.tfevents.1").write_bytes(scalars("a", 1.0))
    read()
    slow = EventMetrics.objects.get()
    with (runs / "events.out.tfevents.1").open("ab") as file:
        file.write(scalars("a", 2.0))
    read()
    found = event_files._read(slow, clock.now())
    assert not event_files.event_files.store(slow, found, now=clock.now())
    assert EventMetrics.objects.get().summary["a"]["count"] == 2
