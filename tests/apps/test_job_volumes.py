"""Volumes of a job on its page and in a clone."""

import re
from collections.abc import Callable
from types import SimpleNamespace

from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.test_submission import form_of, post_data

from hekla.apps.accounts.models import User
from hekla.apps.jobs import services
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.job_forms.submission_form import InitialValues
from hekla.pages.submit.form_mapping import filled

As = Callable[[User], Client]
SPEC = JobSpec.parse(
    {
        "name": "mounting",
        "volumes": [
            {"name": "data", "volume_claim_name": "imagenet"},
            {"name": "out", "volume_claim": {"storage": "5Gi", "access_modes": ["ReadWriteMany"]}},
            {"name": "shm", "empty_dir": {"medium": "Memory", "size_limit": "8Gi"}},
            {"name": "tmp", "empty_dir": {}},
        ],
        "tasks": [
            {
                "name": "ps",
                "command": ["run"],
                "volume_mounts": [
                    {"name": "data", "mount_path": "/data", "read_only": True},
                    {"name": "shm", "mount_path": "/dev/shm"},
                ],
            },
            {
                "name": "worker",
                "command": ["run"],
                "volume_mounts": [
                    {"name": "out", "mount_path": "/work/out"},
                    {"name": "tmp", "mount_path": "/scratch"},
                ],
            },
        ],
    }
)


def test_page_lists_volumes_with_mounts(people: People, as_: As) -> None:
    job = services.submit(spec=SPEC, tenant=people.lab, user=people.alice, now=clock.now())
    page = as_(people.alice).get(reverse("jobs:detail", args=[job.uid]), {"tab": "settings"}).content.decode()
    words = " ".join(re.sub("<[^>]*>", " ", page).split())
    for row in (
        "Volume data claim imagenet /data ps · read only",
        "Volume out claim of 5Gi, deleted with the job /work/out worker",
        "Volume shm memory of the pod, at most 8Gi /dev/shm ps",
        "Volume tmp empty folder per pod /scratch worker",
    ):
        assert row in words


def test_removing_a_task_removes_its_volumes() -> None:
    first = filled(SPEC)
    form = form_of(None, InitialValues(first.job, first.tasks[1:], first.files))
    data = QueryDict(mutable=True)
    data.update(post_data(SimpleNamespace(job=form.job, tasks=form.tasks, files=form.files)).dict())
    spec = form_of(data, InitialValues()).spec()
    assert spec is not None
    assert [volume.name for volume in spec.volumes] == ["out", "tmp"]
