"""Items that need attention, and quotas, on the home page."""

from collections.abc import Callable
from datetime import timedelta

from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_quotas import hold_gpus

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import spending
from hekla.apps.jobs.models import Job
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

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


def test_nodes_that_are_not_ready_are_listed_for_operators(people: People, as_: As) -> None:
    Node.objects.update(is_ready=False, message="<b>silent")
    assert "&lt;b&gt;silent" in needs(as_, people.ada)
    assert "silent" not in needs(as_, people.alice)


def test_own_gpu_hours_are_shown(people: People, as_: As) -> None:
    Cluster.objects.update(kind="local")
    Node.objects.update(allocatable={"cpu": "8", "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "8"})
    task = {"name": "main", "command": ["true"], "resources": {"nvidia.com/gpu": "2"}}
    now = clock.now()
    hold_gpus(people.submit("gpu", tasks=[task]), max(now - timedelta(hours=3), spending.month_of(now)), None)
    assert "GPU-hours of yours this month" in needs(as_, people.alice)
    assert "GPU-hours" not in needs(as_, people.bob)


def test_last_day_counts_pods_on_nodes(people: People, as_: As) -> None:
    cache.delete("home-day-with-most")
    page = as_(people.bob).get(reverse("home_day")).content.decode()
    assert "No pod ran in the last 24 hours" in page
    now = clock.now()
    for name, began, ended in (
        ("runs", timedelta(days=3), None),
        ("ended", timedelta(days=3), timedelta(hours=1)),
        ("short", timedelta(minutes=38), timedelta(minutes=37)),
        ("long-ago", timedelta(days=3), timedelta(days=2)),
    ):
        hold_gpus(people.submit(name), now - began, now - ended if ended else None)
    cache.delete("home-day-with-most")
    page = as_(people.bob).get(reverse("home_day")).content.decode()
    assert "now 1, at most 2" in page
    assert 'd="M0 100V0H10V0H20' in page
    assert page.count("V50H") == 3, "an hour without the quarter with a second pod"
    cache.delete("home-day-with-most")


def test_quotas_are_shown(people: People, as_: As) -> None:
    people.submit("one")
    common = {"tenant": people.lab, "by": people.ada, "actor": PLATFORM, "now": clock.now()}
    quotas.set_quota(of=Quota.Of.TENANT, user=None, bounds={"jobs": 4}, **common)
    page = needs(as_, people.alice)
    assert "My quotas" in page
    assert "1 of 4 unfinished jobs" in page
