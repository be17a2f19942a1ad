"""Change of the priority of an unfinished job: rights, event and revision."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import history
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.domain.errors import Forbidden, Invalid, Refused
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]


def set_priority(job: Job, priority: int, user: User, **more: int) -> Job:
    return services.set_priority(job, priority, user=user, now=clock.now(), **more)


def test_change_is_stored_and_recorded(people: People) -> None:
    job = set_priority(people.submit(), 7, people.alice)
    assert (job.priority, job.spec["priority"], job.revision) == (7, 7, 2)
    (line,) = history.lines(list(LoggedEvent.objects.filter(kind="JobChanged")))
    assert (line.sentence, line.actor) == ("Changed: priority from 0 to 7.", "alice")


def test_same_priority_changes_nothing(people: People) -> None:
    job = set_priority(people.submit(), 0, people.alice)
    assert job.revision == 1
    assert not LoggedEvent.objects.filter(kind="JobChanged").exists()


@pytest.mark.parametrize(
    ("phase", "is_allowed"),
    [("pending", True), ("running", True), ("aborted", True), ("completed", False), ("failed", False)],
)
def test_only_unfinished_jobs_change(people: People, phase: str, is_allowed: bool) -> None:
    job = people.submit()
    Job.objects.update(phase=phase)
    if is_allowed:
        assert set_priority(job, 3, people.alice).priority == 3
    else:
        with pytest.raises(Refused, match="Clone it"):
            set_priority(job, 3, people.alice)


def test_viewer_is_refused(people: People) -> None:
    with pytest.raises(Forbidden):
        set_priority(people.submit(), 3, people.bob)


def test_out_of_range_priority_is_refused(people: People) -> None:
    with pytest.raises(Invalid):
        set_priority(people.submit(), 10**10, people.alice)


def test_stale_revision_is_refused(people: People) -> None:
    job = set_priority(people.submit(), 3, people.alice)
    with pytest.raises(Refused, match="The job was changed"):
        set_priority(job, 4, people.alice, expected_revision=1)


def test_idempotency_key_still_finds_the_job(people: People) -> None:
    spec = JobSpec.parse({"name": "keyed", "tasks": [{"name": "a", "command": ["x"]}]})
    request = {"spec": spec, "tenant": people.lab, "user": people.alice, "key": "k"}
    job = services.submit(**request, now=clock.now())
    set_priority(job, 3, people.alice)
    assert services.submit(**request, now=clock.now()).pk == job.pk


def test_page_changes_priority_and_keeps_refused_input(people: People, as_: As) -> None:
    job, client = people.submit(), as_(people.alice)
    address = reverse("jobs:priority", args=[job.uid])
    page = client.post(address, {"priority-revision": "1", "priority-priority": "9"}, follow=True).content.decode()
    assert "priority from 0 to 9" in page
    page = client.post(address, {"priority-revision": "1", "priority-priority": "12"}).content.decode()
    assert "The job was changed" in page
    assert 'value="12"' in page
    Job.objects.update(phase="completed")
    assert (
        "jobs:priority" not in client.get(reverse("jobs:detail", args=[job.uid]), {"tab": "settings"}).content.decode()
    )


def test_priority_over_rest(people: People, as_: As) -> None:
    job, client = people.submit(), as_(people.alice)
    address = reverse("api:v1:job_priority", args=[job.uid])
    answer = client.patch(address, {"priority": -4}, content_type="application/json")
    assert (answer.status_code, answer.json()["priority"]) == (200, -4)
    again = client.patch(address, {"priority": 1, "revision": 1}, content_type="application/json")
    assert (again.status_code, again.json()["code"]) == (409, "changed_meanwhile")
    assert client.patch(address, {"priority": "x"}, content_type="application/json").status_code == 400
