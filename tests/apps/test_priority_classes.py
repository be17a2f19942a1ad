"""Priority classes: who may use which, what a job takes from one when it is submitted, and that it keeps it."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.priorities import services
from hekla.apps.priorities.models import PriorityClass
from hekla.domain.errors import Invalid, Refused
from hekla.lib import clock
from hekla.scheduling import snapshot

As = Callable[[User], Client]


def make(name: str, value: int, people: People | None = None, **more: object) -> PriorityClass:
    tenants = [people.lab] if people else []
    return services.create(name=name, values={"value": value, **more}, tenants=tenants, actor=PLATFORM, now=clock.now())


def problem(people: People, **spec: object) -> tuple[str, str]:
    with pytest.raises(Invalid) as refused:
        people.submit("wrong", **spec)
    return refused.value.problems[0].path, refused.value.problems[0].message


def test_a_job_keeps_the_number_that_its_class_had(people: People) -> None:
    high = make("high", 100)
    job = people.submit(priority_class="high")
    services.change(high, {"value": 900}, actor=PLATFORM, now=clock.now())
    assert people.submit("later", priority_class="high").priority == 900
    services.delete(high, actor=PLATFORM, now=clock.now())
    assert Job.objects.get(pk=job.pk).priority == 100


def test_a_class_that_is_unknown_or_for_others_is_refused_at_its_field(people: People) -> None:
    make("normal", 10)
    PriorityClass.objects.filter(pk=make("theirs", 500).pk).get().tenants.set([people.other])
    make("gone", 50, is_offered=False)
    for name in ("theirs", "gone", "none-such"):
        told = f"Lab cannot use a priority class “{name}”. Available: normal."
        assert problem(people, priority_class=name) == ("priority_class", told)


def test_a_class_and_another_number_contradict_each_other(people: People) -> None:
    make("high", 100)
    assert people.submit(priority_class="high", priority=100).priority == 100
    assert problem(people, priority_class="high", priority=5)[0] == "priority"


def test_numbers_go_as_far_as_the_classes_that_one_may_use(people: People) -> None:
    assert people.submit("free", priority=9999).priority == 9999
    make("normal", 10)
    job = people.submit("lower", priority=-5)
    assert "maximum priority in Lab is 10" in problem(people, priority=11)[1]
    with pytest.raises(Invalid, match="maximum priority in Lab is 10"):
        jobs.set_priority(job, 11, user=people.alice, now=clock.now())
    assert jobs.set_priority(job, 10, user=people.alice, now=clock.now()).priority == 10
    assert jobs.set_priority(job, 11, user=people.ada, now=clock.now()).priority == 11


def test_jobs_that_say_nothing_get_the_default_if_they_may(people: People) -> None:
    make("low", 3, is_default=True)
    assert people.submit("first").priority == 3
    make("labs", 7, people, is_default=True)
    assert list(PriorityClass.objects.filter(is_default=True).values_list("name", flat=True)) == ["labs"]
    assert (people.submit("second").priority, people.submit("third", priority=5).priority) == (7, 5)


def test_a_class_may_go_first_without_evicting(people: People) -> None:
    make("patient", 100, never_preempts=True)
    job = people.submit(priority_class="patient")
    pod = Pod(pk=1, job=job, task="main", index=0, attempt=1, version=1, created_at=clock.now())
    told = snapshot.job(job, [pod], {})
    assert (told.priority, told.pods[0].never_preempts) == (100, True)
    assert not people.submit("plain").never_preempts


def test_a_job_whose_priority_is_changed_is_of_its_class_no_more(people: People) -> None:
    make("high", 100)
    job = jobs.set_priority(people.submit(priority_class="high"), 50, user=people.alice, now=clock.now())
    assert (job.priority, "priority_class" in job.spec) == (50, False)


def test_a_name_is_given_once(people: People) -> None:
    make("high", 1)
    with pytest.raises(Refused, match="“high” exists already"):
        make("high", 2)


def test_admins_manage_them_on_the_page_and_others_see_what_they_may_use(people: People, as_: As) -> None:
    ada, listed = as_(people.ada), reverse("priorities:list")
    form = {"name": "high", "value": "100", "is_offered": "on", "tenants": [people.lab.pk]}
    assert ada.post(reverse("priorities:create"), form).status_code == 302
    assert "high" in as_(people.alice).get(listed).content.decode()
    assert "high" not in as_(people.charlie).get(listed).content.decode()
    again = ada.post(reverse("priorities:create"), form).content.decode()
    assert "already" in again
    ada.post(reverse("priorities:edit", args=["high"]), {"value": "70", "is_offered": "on"})
    assert "high" in as_(people.charlie).get(listed).content.decode()
    ada.post(reverse("priorities:delete", args=["high"]))
    assert not PriorityClass.objects.exists()


def test_the_form_offers_them_and_refuses_in_the_field(people: People, as_: As) -> None:
    alice, address = as_(people.alice), reverse("jobs:submit")
    assert "Priority class" not in alice.get(address).content.decode().split("<main")[1]
    make("high", 100)
    page = alice.get(address).content.decode()
    assert "high (100)" in page
    clone = people.submit(priority_class="high")
    assert 'value="high" selected' in alice.get(address, {"clone": str(clone.uid)}).content.decode()
