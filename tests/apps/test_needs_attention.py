"""Items that need attention, and quotas, on the home page."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.lib import clock

As = Callable[[User], Client]


def needs(as_: As, user: User) -> str:
    return as_(user).get(reverse("home_needs")).content.decode()


def test_no_items_without_problems(people: People, as_: As) -> None:
    people.submit("fine")
    assert not needs(as_, people.alice).strip()
    assert not needs(as_, people.ada).strip(), "Ada has no tenant"


def test_failed_and_stuck_jobs_are_listed_for_their_owner(people: People, as_: As) -> None:
    failed, stuck = people.submit("broke"), people.submit("too-big")
    Job.objects.filter(pk=failed.pk).update(phase="failed", finished_at=clock.now())
    Job.objects.filter(pk=stuck.pk).update(waiting=[{"cause": "capacity", "code": "x", "ever": False}])
    page = needs(as_, people.alice)
    assert "Needs attention" in page
    assert [name in page for name in ("broke", "too-big")] == [True, True]
    assert "broke" not in needs(as_, people.bob)


def test_quotas_are_shown(people: People, as_: As) -> None:
    people.submit("one")
    common = {"tenant": people.lab, "by": people.ada, "actor": PLATFORM, "now": clock.now()}
    quotas.set_quota(of=Quota.Of.TENANT, user=None, bounds={"jobs": 4}, **common)
    page = needs(as_, people.alice)
    assert "My quotas" in page
    assert "1 of 4 unfinished jobs" in page
