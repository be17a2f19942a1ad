"""Priority classes: who may use them, and what a job takes from its class at submission."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.priorities import services
from hekla.apps.priorities.models import PriorityClass
from hekla.domain.errors import Invalid, Refused
from hekla.lib import clock
from hekla.scheduling import snapshot

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]


def create_class(name: str, value: int, people: People | None = None, **more: object) -> PriorityClass:
    tenants = [people.lab] if people else []
    return services.create(name=name, values={"value": value, **more}, tenants=tenants, actor=PLATFORM, now=clock.now())


def problem(people: People, **spec: object) -> tuple[str, str]:
    with pytest.raises(Invalid) as refused:
        people.submit("wrong", **spec)
    return refused.value.problems[0].path, refused.value.problems[0].message


def test_job_keeps_the_priority_of_its_submission(people: People) -> None:
    high = create_class("high", 100)
    job = people.submit(priority_class="high")
    services.change(high, {"value": 900}, actor=PLATFORM, now=clock.now())
    assert people.submit("later", priority_class="high").priority == 900
    services.delete(high, actor=PLATFORM, now=clock.now())
    assert Job.objects.get(pk=job.pk).priority == 100


def test_unavailable_class_is_refused_at_its_field(people: People) -> None:
    create_class("normal", 10)
    PriorityClass.objects.filter(pk=create_class("theirs", 500).pk).get().tenants.set([people.other])
    create_class("gone", 50, is_offered=False)
    for name in ("theirs", "gone", "none-such"):
        message = f"Lab cannot use a priority class “{name}”. Available: normal."
        assert problem(people, priority_class=name) == ("priority_class", message)


def test_class_and_different_priority_are_refused(people: People) -> None:
    create_class("high", 100)
    assert people.submit(priority_class="high", priority=100).priority == 100
    assert problem(people, priority_class="high", priority=5)[0] == "priority"


def test_priority_is_limited_by_available_classes(people: People) -> None:
    assert people.submit("free", priority=9999).priority == 9999
    create_class("normal", 10)
    job = people.submit("lower", priority=-5)
    assert "maximum priority in Lab is 10" in problem(people, priority=11)[1]
    with pytest.raises(Invalid, match="maximum priority in Lab is 10"):
        jobs.set_priority(job, 11, user=people.alice, now=clock.now())
    assert jobs.set_priority(job, 10, user=people.alice, now=clock.now()).priority == 10
    assert jobs.set_priority(job, 11, user=people.ada, now=clock.now()).priority == 11


def test_default_class_applies_if_available(people: People) -> None:
    create_class("low", 3, is_default=True)
    assert people.submit("first").priority == 3
    create_class("labs", 7, people, is_default=True)
    assert list(PriorityClass.objects.filter(is_default=True).values_list("name", flat=True)) == ["labs"]
    assert (people.submit("second").priority, people.submit("third", priority=5).priority) == (7, 5)


def test_class_that_never_preempts(people: People) -> None:
    create_class("patient", 100, never_preempts=True)
    job = people.submit(priority_class="patient")
    pod = Pod(pk=1, job=job, task="main", index=0, attempt=1, version=1, created_at=clock.now())
    job_info = snapshot.job(job, [pod], {}, {})
    assert (job_info.priority, job_info.pods[0].never_preempts) == (100, True)
    assert not people.submit("plain").never_preempts


def test_changed_priority_removes_the_class(people: People) -> None:
    create_class("high", 100)
    job = jobs.set_priority(people.submit(priority_class="high"), 50, user=people.alice, now=clock.now())
    assert (job.priority, "priority_class" in job.spec) == (50, False)


def test_duplicate_name_is_refused(people: People) -> None:
    create_class("high", 1)
    with pytest.raises(Refused, match="“high” exists already"):
        create_class("high", 2)


def test_admins_manage_classes_and_users_see_available_ones(people: People, as_: As) -> None:
    ada, list_url = as_(people.ada), reverse("priorities:list")
    form = {"name": "high", "value": "100", "is_offered": "on", "tenants": [people.lab.pk]}
    assert ada.post(reverse("priorities:create"), form).status_code == 302
    assert "high" in as_(people.alice).get(list_url).content.decode()
    assert "high" not in as_(people.charlie).get(list_url).content.decode()
    again = ada.post(reverse("priorities:create"), form).content.decode()
    assert "already" in again
    ada.post(reverse("priorities:edit", args=["high"]), {"value": "70", "is_offered": "on"})
    assert "high" in as_(people.charlie).get(list_url).content.decode()
    ada.post(reverse("priorities:delete", args=["high"]))
    assert not PriorityClass.objects.exists()


def test_form_offers_available_classes(people: People, as_: As) -> None:
    alice, address = as_(people.alice), reverse("jobs:submit")
    assert "Priority class" not in alice.get(address).content.decode().split("<main")[1]
    create_class("high", 100)
    page = alice.get(address).content.decode()
    assert "high (100)" in page
    clone = people.submit(priority_class="high")
    assert 'value="high" selected' in alice.get(address, {"clone": str(clone.uid)}).content.decode()
