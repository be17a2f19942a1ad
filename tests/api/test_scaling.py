"""Change of the size of a job over REST."""

import pytest
from django.db import transaction
from pytest_django.fixtures import db
from tests.api.conftest import make_world

from hekla.apps.jobs import services
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.domain.scaling import JobScale
from hekla.lib import clock

__all__ = ["db"]
JOBS = "/api/v1/jobs"


@pytest.fixture
def world(db, settings, tmp_path):
    """Rows of each test: one of them rolls back."""
    settings.HEKLA_HOME = tmp_path
    return make_world()


@pytest.fixture
def submitted(alice, a_job):
    return alice.post(JOBS, a_job, format="json", HTTP_IDEMPOTENCY_KEY="k").json()["job"]


def scale(client, job, size, query=""):
    return client.patch(f"{JOBS}/{job['uid']}/scale{query}", size, format="json")


def test_answer_has_the_new_size(alice, submitted):
    answer = scale(alice, submitted, {"tasks": {"worker": {"replicas": 3}}})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["job"]["replicas"], body["job"]["revision"], body["warnings"]) == (3, 2, [])
    assert body["job"]["spec"]["tasks"][0] | {"replicas": 3, "min_available": 1} == body["job"]["spec"]["tasks"][0]
    event = alice.get(f"{JOBS}/{submitted['uid']}/events").json()["events"][-1]
    assert (event["kind"], event["sentence"]) == ("JobChanged", "Changed: replicas of worker from 1 to 3.")


def test_the_same_size_again_changes_nothing(alice, submitted):
    for _ in range(2):
        body = scale(alice, submitted, {"tasks": {"worker": {"replicas": 2}}}).json()
    assert body["job"]["revision"] == 2
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
def test_invalid_sizes_are_refused_with_a_path(alice, submitted, size, path):
    answer = scale(alice, submitted, size)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)
    assert Job.objects.get().revision == 1


@pytest.mark.parametrize("document", [[], [1], "x", 7])
def test_malformed_sizes_are_refused(alice, submitted, document):
    assert scale(alice, submitted, document).status_code == 400


def test_stale_revision_returns_409(alice, submitted):
    assert scale(alice, submitted, {"tasks": {"worker": {"replicas": 2}}}, "?revision=1").status_code == 200
    answer = scale(alice, submitted, {"tasks": {"worker": {"replicas": 3}}}, "?revision=1")
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_meanwhile")
    assert scale(alice, submitted, {}, "?revision=x").json()["errors"][0]["path"] == "revision"


def test_rolled_back_change_leaves_no_trace(world, submitted):
    def scale_to(replicas):
        size = JobScale.parse({"tasks": {"worker": {"replicas": replicas}}})
        services.scale(Job.objects.get(), size, user=world.people["alice"], now=clock.now())

    with transaction.atomic():
        scale_to(2)
        transaction.set_rollback(True)
    assert spec_of(Job.objects.get()).replicas == 1
    scale_to(3)
    assert (spec_of(Job.objects.get()).replicas, Job.objects.get().revision) == (3, 2)


def test_finished_job_cannot_be_scaled(alice, submitted):
    Job.objects.update(phase="completed")
    answer = scale(alice, submitted, {"tasks": {"worker": {"replicas": 2}}})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")


def test_repeated_submission_returns_the_scaled_job(alice, submitted, a_job):
    scale(alice, submitted, {"tasks": {"worker": {"replicas": 2}}})
    again = alice.post(JOBS, a_job, format="json", HTTP_IDEMPOTENCY_KEY="k")
    assert (again.status_code, again.json()["job"]["replicas"]) == (200, 2)
    other = {**a_job, "tasks": [{**a_job["tasks"][0], "command": ["false"]}]}
    assert alice.post(JOBS, other, format="json", HTTP_IDEMPOTENCY_KEY="k").status_code == 409


def test_only_the_owner_scales(bob, charlie, submitted):
    size = {"tasks": {"worker": {"replicas": 2}}}
    assert scale(bob, submitted, size).status_code == 403
    assert scale(charlie, submitted, size).status_code == 404
    assert Job.objects.get().revision == 1
