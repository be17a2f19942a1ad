"""The form on a job's page that changes its size."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Node
from hekla.apps.jobs.models import Job, Pod
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
TASKS = [
    {"name": "ps", "command": ["true"], "replicas": 1},
    {"name": "worker", "command": ["true"], "replicas": 2, "min_available": 1, "resources": {"cpu": "1"}},
]


@pytest.fixture
def job(people: People) -> Job:
    return people.submit(tasks=TASKS, plugins={"tensorflow": []})


def form(**changes: str) -> dict[str, str]:
    sizes = {"replicas-0": "1", "least-0": "1", "replicas-1": "2", "least-1": "1", "min_available": ""} | changes
    return {"size-revision": "1"} | {f"size-{name}": value for name, value in sizes.items()}


def test_form_changes_the_size(people: People, as_: As, job: Job) -> None:
    alice, url = as_(people.alice), reverse("jobs:detail", args=[job.uid]) + "?tab=settings"
    assert 'name="size-replicas-1" value="2"' in alice.get(url).content.decode()
    Pod.objects.create(job=job, task="ps", index=0, attempt=1, version=1, slot=1, created_at=clock.now())
    page = alice.post(reverse("jobs:scale", args=[job.uid]), form(**{"replicas-1": "4"}), follow=True).content.decode()
    job.refresh_from_db()
    assert [task["replicas"] for task in job.spec["tasks"] if "replicas" in task] == [4]
    assert "replicas of worker from 2 to 4" in page
    assert "running pods keep the old TF_CONFIG" in page


def test_form_changes_the_target_of_autoscaling(people: People, as_: As) -> None:
    rule = {"max_replicas": 3, "gpu_utilization": 70}
    tasks = [TASKS[0], TASKS[1] | {"autoscaling": rule, "resources": {"nvidia.com/gpu": "1"}}]
    Node.objects.update(allocatable={"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "4"})
    job = people.submit(tasks=tasks)
    alice, url = as_(people.alice), reverse("jobs:scale", args=[job.uid])
    assert (
        'name="size-target-1" value="70"'
        in alice.get(reverse("jobs:detail", args=[job.uid]), {"tab": "settings"}).content.decode()
    )
    refused = alice.post(url, form(**{"auto-1": "on", "most-1": "1", "target-1": "85"})).content.decode()
    assert 'href="#id_size-most-1"' in refused
    page = alice.post(url, form(**{"auto-1": "on", "most-1": "4", "target-1": "85"}), follow=True).content.decode()
    job.refresh_from_db()
    assert job.spec["tasks"][1]["autoscaling"] == {"max_replicas": 4, "gpu_utilization": 85}
    assert "target GPU utilization of worker from 70% to 85%" in page
    off = form(**{"most-1": "4", "target-1": "85"}) | {"size-revision": "2"}
    page = alice.post(url, off, follow=True).content.decode()
    job.refresh_from_db()
    assert "autoscaling" not in job.spec["tasks"][1]
    assert "target GPU utilization of worker from 85% to off" in page
    assert (
        "size-target-1" not in alice.get(reverse("jobs:detail", args=[job.uid]), {"tab": "settings"}).content.decode()
    )


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"least-1": "3"}, "id_size-least-1", "The task has 2 replicas"),
        ({"replicas-1": "-1"}, "id_size-replicas-1", "greater than or equal to 0"),
        ({"replicas-0": "x"}, "id_size-replicas-0", "whole number"),
        ({"min_available": "9"}, "id_size-min_available", "The tasks have 3 replicas in total"),
        ({"replicas-1": "9", "least-1": "9"}, "", "can never start"),
    ],
)
def test_errors_are_at_their_field_and_keep_the_input(
    people: People, as_: As, job: Job, changes: dict[str, str], field: str, words: str
) -> None:
    page = as_(people.alice).post(reverse("jobs:scale", args=[job.uid]), form(**changes)).content.decode()
    assert words in page
    assert f'href="#{field}"' in page or not field
    assert all(f'name="size-{name}" value="{value}"' in page for name, value in changes.items())
    assert Job.objects.get().revision == 1


def test_stale_form_shows_the_new_revision_and_keeps_the_input(people: People, as_: As, job: Job) -> None:
    alice, url = as_(people.alice), reverse("jobs:scale", args=[job.uid])
    alice.post(url, form(**{"replicas-1": "3"}))
    page = alice.post(url, form(**{"replicas-1": "4"})).content.decode()
    assert "The job was changed by another person" in page
    assert 'name="size-revision" value="2"' in page
    assert 'name="size-replicas-1" value="4"' in page


def test_no_form_for_finished_jobs_or_viewers(people: People, as_: As, job: Job) -> None:
    url = reverse("jobs:detail", args=[job.uid]) + "?tab=settings"
    assert "size-revision" not in as_(people.bob).get(url).content.decode()
    Job.objects.update(phase="completed")
    assert "size-revision" not in as_(people.alice).get(url).content.decode()
    page = as_(people.alice).post(reverse("jobs:scale", args=[job.uid]), form()).content.decode()
    assert "The job has finished" in page
