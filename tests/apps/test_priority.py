"""Another priority for a job that is not over: told, from the next cycle on, and only by who may."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import history
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.domain.errors import Forbidden, Invalid, Refused
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

As = Callable[[User], Client]


def change(job: Job, priority: int, user: User, **more: int) -> Job:
    return services.set_priority(job, priority, user=user, now=clock.now(), **more)


def test_it_is_on_the_row_in_the_settings_and_in_the_story(people: People) -> None:
    job = change(people.submit(), 7, people.alice)
    assert (job.priority, job.spec["priority"], job.revision) == (7, 7, 2)
    (line,) = history.lines(list(LoggedEvent.objects.filter(kind="JobChanged")))
    assert (line.sentence, line.actor) == ("Changed: priority from 0 to 7.", "alice")


def test_the_same_again_changes_nothing(people: People) -> None:
    job = change(people.submit(), 0, people.alice)
    assert job.revision == 1
    assert not LoggedEvent.objects.filter(kind="JobChanged").exists()


@pytest.mark.parametrize(
    ("phase", "may"),
    [("pending", True), ("running", True), ("aborted", True), ("completed", False), ("failed", False)],
)
def test_only_of_a_job_that_is_not_over(people: People, phase: str, may: bool) -> None:
    job = people.submit()
    Job.objects.update(phase=phase)
    if may:
        assert change(job, 3, people.alice).priority == 3
    else:
        with pytest.raises(Refused, match="Clone it"):
            change(job, 3, people.alice)


def test_who_may_only_look_is_refused(people: People) -> None:
    with pytest.raises(Forbidden):
        change(people.submit(), 3, people.bob)


def test_what_no_priority_is_is_refused(people: People) -> None:
    with pytest.raises(Invalid):
        change(people.submit(), 10**10, people.alice)


def test_who_looked_at_another_revision_is_told_so(people: People) -> None:
    job = change(people.submit(), 3, people.alice)
    with pytest.raises(Refused, match="The job was changed"):
        change(job, 4, people.alice, expected_revision=1)


def test_sent_again_under_its_key_it_is_still_the_same_job(people: People) -> None:
    spec = JobSpec.parse({"name": "keyed", "tasks": [{"name": "a", "command": ["x"]}]})
    asked = {"spec": spec, "tenant": people.lab, "user": people.alice, "key": "k"}
    job = services.submit(**asked, now=clock.now())
    change(job, 3, people.alice)
    assert services.submit(**asked, now=clock.now()).pk == job.pk


def test_the_page_changes_it_and_keeps_what_was_refused(people: People, as_: As) -> None:
    job, client = people.submit(), as_(people.alice)
    address = reverse("jobs:priority", args=[job.uid])
    page = client.post(address, {"priority-revision": "1", "priority-priority": "9"}, follow=True).content.decode()
    assert "priority from 0 to 9" in page
    page = client.post(address, {"priority-revision": "1", "priority-priority": "12"}).content.decode()
    assert "The job was changed" in page
    assert 'value="12"' in page
    Job.objects.update(phase="completed")
    assert "jobs:priority" not in client.get(reverse("jobs:detail", args=[job.uid])).content.decode()


def test_programs_change_it_too(people: People, as_: As) -> None:
    job, client = people.submit(), as_(people.alice)
    address = reverse("api:v1:job_priority", args=[job.uid])
    answer = client.patch(address, {"priority": -4}, content_type="application/json")
    assert (answer.status_code, answer.json()["priority"]) == (200, -4)
    again = client.patch(address, {"priority": 1, "revision": 1}, content_type="application/json")
    assert (again.status_code, again.json()["code"]) == (409, "changed_meanwhile")
    assert client.patch(address, {"priority": "x"}, content_type="application/json").status_code == 400
