"""The lists of people and tenants with their usage, the suggestions of people, and the page of a cluster."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_quotas import hold_gpus

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import leases
from hekla.apps.clusters.models import Cluster, Lease, Node
from hekla.apps.jobs import spending
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import departments
from hekla.apps.tenancy import services as tenancy
from hekla.lib import clock
from hekla.scheduling import occupancy

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
GPU = "nvidia.com/gpu"


@pytest.fixture
def gpu_job(people: People) -> Job:
    """A job of Alice that holds two real GPUs since an hour, or since the start of the month."""
    Cluster.objects.update(kind="local")
    Node.objects.update(allocatable={"cpu": "4", "memory": "8Gi", "pods": "10", GPU: "8"})
    task = {"name": "main", "command": ["true"], "resources": {GPU: "2", "cpu": "1"}}
    job, now = people.submit("gpus", tasks=[task]), clock.now()
    hold_gpus(job, max(now - timedelta(hours=1), spending.month_of(now)), None)
    job.pods.update(phase="running", node="n1")
    Job.objects.filter(pk=job.pk).update(phase="running", started_at=now)
    occupancy.forget()
    return job


def cells(page: str, row: str) -> list[str]:
    """The texts of the cells of the row with this text."""
    found = next(part for part in re.findall(r"<tr[^>]*>.*?</tr>", page, re.DOTALL) if f">{row}<" in part)
    texts = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", found, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", text).split()) for text in texts]


def test_people_and_tenants_are_listed_with_their_usage(
    people: People, gpu_job: Job, as_: As, django_assert_max_num_queries
) -> None:
    client = as_(people.ada)
    with django_assert_max_num_queries(12):
        page = client.get(reverse("accounts:list")).content.decode()
    alice, bob = cells(page, "Alice"), cells(page, "Bob")
    assert alice[2:4] == ["Lab", "2"]
    assert float(alice[4]) == pytest.approx(
        spending.of_people([people.alice.pk], clock.now())[people.alice.pk].all_hours, abs=0.1
    )
    assert bob[3:5] == ["0", "0.0"]
    with django_assert_max_num_queries(12):
        page = client.get(reverse("tenancy:list")).content.decode()
    assert cells(page, "Lab")[4] == "2"
    assert cells(page, "Other")[4] == "0"
    person = client.get(reverse("accounts:edit", args=[people.alice.pk])).content.decode()
    assert "GPU-hours this month" in person
    assert f"{reverse('audit')}?person=alice" in person


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"state": "disabled"}, {"bob"}),
        ({"state": "active", "q": "ali"}, {"alice"}),
        ({"sign_in": "never"}, {"charlie"}),
        ({"sign_in": "old"}, {"bob"}),
        ({"sign_in": "recent"}, {"ada", "alice"}),
    ],
)
def test_people_are_filtered_by_their_sign_in(people: People, as_: As, query: dict[str, str], names: set[str]) -> None:
    client, now = as_(people.ada), clock.now()
    User.objects.filter(username__in=("ada", "alice")).update(last_login=now)
    User.objects.filter(username="bob").update(last_login=now - timedelta(days=60), is_active=False)
    page = client.get(reverse("accounts:list"), {**query, "all": "yes"}).content.decode()
    assert set(re.findall(r'<span class="row-note">(\w+)', page)) == names


def suggestions(page: str) -> set[str]:
    return set(re.findall(r'<option value="(\w+)">', page.partition("<datalist")[2].partition("</datalist>")[0]))


def test_only_people_that_one_can_see_are_suggested(people: People, as_: As) -> None:
    address = reverse("tenancy:detail", args=["lab"])
    assert suggestions(as_(people.ada).get(address).content.decode()) == {"ada", "charlie"}
    assert suggestions(as_(people.alice).get(address).content.decode()) == set()
    tenancy.add_member(people.other, people.alice, "viewer", actor=actor_of(people.ada), now=clock.now())
    assert suggestions(as_(people.alice).get(address).content.decode()) == {"charlie"}
    refused = as_(people.alice).post(reverse("tenancy:add_member", args=["lab"]), {"user": "nobody", "role": "member"})
    assert 'value="nobody"' in refused.content.decode(), "what was typed stays"
    assert suggestions(refused.content.decode()) == {"charlie"}


def test_last_sign_in_of_members_is_for_those_who_manage_them(people: People, as_: As) -> None:
    address = reverse("tenancy:detail", args=["lab"])
    assert "Last sign-in" in as_(people.alice).get(address).text
    assert "Last sign-in" not in as_(people.bob).get(address).text


def test_head_of_a_department_is_added_by_choosing(people: People, as_: As) -> None:
    who = {"actor": actor_of(people.ada), "now": clock.now()}
    departments.create(slug="science", name="Science", heads=[people.alice], **who)
    address = reverse("departments:edit", args=["science"])
    assert suggestions(as_(people.ada).get(address).content.decode()) >= {"bob", "charlie"}
    entered = {"name": "Science", "description": "", "heads": "alice"}
    refused = as_(people.ada).post(address, {**entered, "new_head": "nobody"})
    assert refused.context["form"].errors.keys() == {"new_head"}
    assert as_(people.ada).post(address, {**entered, "new_head": "bob"}).status_code == 302
    assert {head.username for head in User.objects.filter(headed_departments__department__slug="science")} == {
        "alice",
        "bob",
    }


def test_page_of_a_cluster_says_what_it_does(
    people: People, gpu_job: Job, as_: As, django_assert_max_num_queries
) -> None:
    people.submit("waits")
    occupancy.forget()
    client = as_(people.ada)
    Lease.objects.create(cluster=people.cluster, holder="host:1", epoch=3, expires_at=clock.now() + leases.LIFETIME)
    client.get(reverse("clusters:detail", args=["sim"]))
    with django_assert_max_num_queries(12):
        page = client.get(reverse("clusters:detail", args=["sim"])).content.decode()
    assert "host:1" in page
    assert "2 of 8 GPU" in page
    assert "1 of 1 node is ready for pods." in " ".join(page.split())
    for job in (gpu_job, Job.objects.get(name="waits")):
        assert reverse("jobs:detail", args=[job.uid]) in page
    assert page.index(">waits<") < page.index(">gpus<"), "pending jobs first"
    assert cells(page, "default")[2:] == ["1", "1"]
    assert "platform added cluster sim of the kind simulated." in page
    listed = cells(client.get(reverse("clusters:list")).content.decode(), "sim")
    assert "2 of 8 GPU" in " ".join(listed)


def test_empty_cluster_says_what_to_do(people: People, as_: As) -> None:
    Cluster.objects.create(name="spare", kind="simulated", config={"nodes": []}, created_at=clock.now())
    page = as_(people.ada).get(reverse("clusters:detail", args=["spare"])).content.decode()
    assert "No node has reported yet." in page
    assert "No queue yet" in page
    assert reverse("queues:create") in page
