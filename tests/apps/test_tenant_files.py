"""The files of a tenant: measured in the background, shown with their limit, and deleted with their job."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.pod_files import pod, work_of
from tests.apps.test_uploads import begin

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import FileUpload, Job, Pod
from hekla.apps.tenancy.models import Tenant
from hekla.apps.usage import folders
from hekla.apps.usage import selectors as usage
from hekla.apps.usage.models import JobFolder
from hekla.controller import tasks
from hekla.lib import clock
from hekla.pod_files import measuring

__all__ = ["pod"]
As = Callable[[User], Client]


@pytest.fixture
def measured(people: People, pod: Pod, tmp_path: Path) -> JobFolder:
    """A job with 3 MB of files, measured."""
    Job.objects.filter(pk=pod.job_id).update(started_at=clock.now(), phase="running")
    (work_of(pod, tmp_path) / "model.bin").write_bytes(b"x" * 3_000_000)
    folders.list_jobs([pod.job, pod.job], now=clock.now())
    assert measuring.measure_due(now=clock.now()) == 1
    return JobFolder.objects.get()


def test_folders_are_measured_when_they_are_due(measured: JobFolder, pod: Pod, tmp_path: Path) -> None:
    assert (3_000_000 <= measured.size < 3_100_000, measured.files, measured.is_complete) == (True, 6, True)
    now = clock.now()
    assert measuring.measure_due(now=now) == 0
    (work_of(pod, tmp_path) / "model.bin").unlink()
    assert measuring.measure_due(now=now + timedelta(minutes=11)) == 1
    assert JobFolder.objects.get().size < 100_000
    end = now + timedelta(minutes=22)
    Job.objects.filter(pk=pod.job_id).update(phase="completed", finished_at=end)
    assert measuring.measure_due(now=end) == 1
    assert JobFolder.objects.get().due_at == end + timedelta(days=1)
    Job.objects.filter(pk=pod.job_id).update(deleted_at=end, cleaned_at=end)
    assert usage.files_of(pod.job.tenant).size == 0
    assert measuring.measure_due(now=end + timedelta(days=2)) == 0
    assert not JobFolder.objects.exists()


def test_folder_of_a_pod_that_is_gone_is_tried_later(measured: JobFolder, pod: Pod) -> None:
    Pod.objects.filter(pk=pod.pk).update(index=7)
    later = clock.now() + timedelta(hours=1)
    assert measuring.measure_due(now=later) == 0
    assert JobFolder.objects.get().due_at > later


def test_page_shows_the_largest_folders(people: People, as_: As, measured: JobFolder, pod: Pod) -> None:
    address = reverse("tenancy:files", args=["lab"])
    page = as_(people.alice).get(address).content.decode()
    assert ("writer" in page, "There is no limit" in page, "100 %" in page) == (True, True, True)
    delete = reverse("jobs:delete", args=[pod.job.uid])
    assert delete not in page  # it runs
    Job.objects.filter(pk=pod.job_id).update(phase="completed")
    assert delete in as_(people.alice).get(address).content.decode()
    assert delete not in as_(people.bob).get(address).content.decode()
    assert as_(people.charlie).get(address).status_code == 404
    tab = as_(people.bob).get(f"{reverse('jobs:detail', args=[pod.job.uid])}?tab=files").content.decode()
    assert "The files of this job take" in tab
    assert address in as_(people.bob).get(reverse("tenancy:detail", args=["lab"])).content.decode()


def test_limit_refuses_uploads(people: People, as_: As, measured: JobFolder, pod: Pod, tmp_path: Path) -> None:
    address, ada = reverse("tenancy:files", args=["lab"]), as_(people.ada)
    assert as_(people.alice).post(address, {"files_gib": "1"}).status_code == 403
    assert ada.post(address, {"files_gib": "0"}).status_code == 302
    assert "The limit is reached" in ada.get(address).content.decode()
    refused = begin(as_(people.alice), pod, 3, path="a")
    assert (refused.status_code, refused.json()["code"]) == (409, "files_full")
    edit = f"{reverse('files:edit', args=[pod.pk])}?path=a&new=yes"
    answer = as_(people.alice).post(edit, {"text": "typed", "do": "save"})
    assert (answer.status_code, "Its limit is 0 GiB" in answer.content.decode()) == (409, True)
    assert "typed" in answer.content.decode()
    stale = ada.post(address, {"files_gib": "7", "initial-files_gib": "5"})
    assert "Somebody else changed this" in stale.content.decode()
    ada.post(address, {"files_gib": "1"})
    assert "of 1.0" in ada.get(address).content.decode()
    assert begin(as_(people.alice), pod, 3, path="a").status_code == 201
    assert begin(as_(people.alice), pod, 2**30, path="b").status_code == 409


def test_uploads_count_before_they_are_measured(people: People, as_: As, measured: JobFolder, pod: Pod) -> None:
    """The folder of an ended job is measured once a day: until then, people could upload without a limit."""
    now = clock.now()
    Tenant.objects.filter(slug="lab").update(files_gib=1)
    JobFolder.objects.update(size=2**30 - 10, due_at=now + timedelta(days=1))
    alice, edit = as_(people.alice), reverse("files:edit", args=[pod.pk])
    assert alice.post(f"{edit}?path=a&new=yes", {"text": "12345678", "do": "save"}).status_code == 302
    folder = JobFolder.objects.get()
    assert (folder.size, folder.due_at < now + timedelta(minutes=11)) == (2**30 - 2, True)
    assert alice.post(f"{edit}?path=b&new=yes", {"text": "12345678", "do": "save"}).status_code == 409


def test_rest_shows_and_sets_the_limit(people: People, as_: As, measured: JobFolder) -> None:
    found = as_(people.bob).get("/api/v1/tenants/lab/files").json()
    (job,) = found["jobs"]
    assert (found["limit_gib"], found["size_bytes"], found["complete"]) == (None, measured.size, True)
    assert (job["name"], job["owner"], job["files"]) == ("writer", "alice", 6)
    kind = "application/json"
    for person, status in ((people.alice, 403), (people.charlie, 404), (people.ada, 200)):
        put = as_(person).put("/api/v1/tenants/lab/files", {"limit_gib": 5}, content_type=kind)
        assert put.status_code == status
    assert Tenant.objects.get(slug="lab").files_gib == 5
    assert as_(people.ada).put("/api/v1/tenants/lab/files", {"limit_gib": -1}, content_type=kind).status_code == 400


def test_task_forgets_expired_uploads(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    for name in ("a", "b"):
        begin(as_(people.alice), pod, 3, path=name)
    FileUpload.objects.filter(path="a").update(expires_at=clock.now() - timedelta(seconds=1))
    tasks.look_after_files()
    assert [one.path for one in FileUpload.objects.all()] == ["b"]
    assert len(list(work_of(pod, tmp_path).glob(".hekla*"))) == 1
