"""Giving a job another size, as a program does."""

import pytest
from django.db import transaction

from hekla.apps.jobs import services
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.domain.scaling import JobScale
from hekla.lib import clock

JOBS = "/api/v1/jobs"


@pytest.fixture
def submitted(alice, a_job):
    return alice.post(JOBS, a_job, format="json", HTTP_IDEMPOTENCY_KEY="k").json()["job"]


def scale(client, job, size, query=""):
    return client.patch(f"{JOBS}/{job['uid']}/scale{query}", size, format="json")


def test_a_job_is_told_in_its_new_size(alice, submitted):
    answer = scale(alice, submitted, {"tasks": {"worker": {"replicas": 3}}})
    assert answer.status_code == 200
    told = answer.json()
    assert (told["job"]["replicas"], told["job"]["revision"], told["warnings"]) == (3, 2, [])
    assert told["job"]["spec"]["tasks"][0] | {"replicas": 3, "min_available": 1} == told["job"]["spec"]["tasks"][0]
    event = alice.get(f"{JOBS}/{submitted['uid']}/events").json()["events"][-1]
    assert (event["kind"], event["sentence"]) == ("JobChanged", "Changed: replicas of worker from 1 to 3.")


def test_the_same_size_again_changes_nothing(alice, submitted):
    for _ in range(2):
        told = scale(alice, submitted, {"tasks": {"worker": {"replicas": 2}}}).json()
    assert told["job"]["revision"] == 2
    assert scale(alice, submitted, {}).json()["job"]["revision"] == 2


@pytest.mark.parametrize(
    ("size", "path"),
    [
        ({"tasks": {"worker": {"replicas": 2, "min_available": 3}}}, "tasks.worker.min_available"),
        ({"tasks": {"other": {"replicas": 2}}}, "tasks.other"),
        ({"tasks": {"worker": {"replicas": 9, "min_available": 9}}}, "tasks"),
        ({"tasks": {"worker": {"command": ["false"]}}}, "tasks.worker.command"),
        ({"tasks": [1]}, "tasks"),
        ({"queue": "theirs"}, "queue"),
    ],
)
def test_what_cannot_be_is_refused_with_its_path(alice, submitted, size, path):
    answer = scale(alice, submitted, size)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)
    assert Job.objects.get().revision == 1


@pytest.mark.parametrize("nonsense", [[], [1], "x", 7])
def test_nonsense_is_refused(alice, submitted, nonsense):
    assert scale(alice, submitted, nonsense).status_code == 400


def test_who_looked_at_another_revision_is_told(alice, submitted):
    assert scale(alice, submitted, {"tasks": {"worker": {"replicas": 2}}}, "?revision=1").status_code == 200
    answer = scale(alice, submitted, {"tasks": {"worker": {"replicas": 3}}}, "?revision=1")
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_meanwhile")
    assert scale(alice, submitted, {}, "?revision=x").json()["errors"][0]["path"] == "revision"


def test_a_change_that_is_undone_leaves_no_trace(world, submitted):
    def scale_to(replicas):
        size = JobScale.parse({"tasks": {"worker": {"replicas": replicas}}})
        services.scale(Job.objects.get(), size, user=world.people["alice"], now=clock.now())

    with transaction.atomic():
        scale_to(2)
        transaction.set_rollback(True)
    assert spec_of(Job.objects.get()).replicas == 1
    scale_to(3)
    assert (spec_of(Job.objects.get()).replicas, Job.objects.get().revision) == (3, 2)


def test_a_job_that_is_over_stays_as_large_as_it_was(alice, submitted):
    Job.objects.update(phase="completed")
    answer = scale(alice, submitted, {"tasks": {"worker": {"replicas": 2}}})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")


def test_a_submission_that_is_sent_again_gives_the_job_in_its_new_size(alice, submitted, a_job):
    scale(alice, submitted, {"tasks": {"worker": {"replicas": 2}}})
    again = alice.post(JOBS, a_job, format="json", HTTP_IDEMPOTENCY_KEY="k")
    assert (again.status_code, again.json()["job"]["replicas"]) == (200, 2)
    other = {**a_job, "tasks": [{**a_job["tasks"][0], "command": ["false"]}]}
    assert alice.post(JOBS, other, format="json", HTTP_IDEMPOTENCY_KEY="k").status_code == 409


def test_a_mate_and_a_stranger_change_nothing(bob, charlie, submitted):
    size = {"tasks": {"worker": {"replicas": 2}}}
    assert scale(bob, submitted, size).status_code == 403
    assert scale(charlie, submitted, size).status_code == 404
    assert Job.objects.get().revision == 1
