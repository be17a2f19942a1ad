"""Pages of queues: the tree, and the page of a queue with shares and positions."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
MOST_QUERIES = {"queues:list": 12, "queues:detail": 12}


def positions(page: str) -> list[tuple[str, str]]:
    """Position and name of each pending job."""
    rows = re.findall(r'data-label="Position">(\d+)<.*?jobs/[0-9a-f-]+/">([^<]+)<', page, re.S)
    return [(position, name) for position, name in rows]


def set_running(job: Job, pods: int = 1) -> None:
    """Mark the job as running, with pods on the node."""
    now = clock.now()
    Job.objects.filter(pk=job.pk).update(phase="running", gang_phase="running", started_at=now)
    for index in range(pods):
        Pod.objects.create(
            job=job, task="main", index=index, attempt=1, version=1, slot=job.pk, address="127.0.0.1",
            phase="running", node="n1", bound_at=now, started_at=now, created_at=now,
        )  # fmt: skip


def test_queues_form_a_tree(people: People, as_: As) -> None:
    now = clock.now()
    parent = queues.create(cluster=people.cluster, name="vision", actor=PLATFORM, now=now)
    queues.create(
        cluster=people.cluster, name="augment", values={"parent": parent}, tenants=[people.other], actor=PLATFORM,
        now=now,
    )  # fmt: skip
    page = as_(people.ada).get(reverse("queues:list")).content.decode()
    assert re.findall(r'class="depth-(\d)" title="[^"]*"><a href="/queues/([a-z]+)/', page) == [
        ("0", "default"), ("0", "vision"), ("1", "augment"),
    ]  # fmt: skip
    assert "child of vision" in page
    queues.change(
        parent, {}, tenants=[people.lab], by=people.ada, actor=PLATFORM, now=now
    )  # Charlie's tenant cannot use the parent: it does not exist for him, not even above his own queue
    page = as_(people.charlie).get(reverse("queues:list")).content.decode()
    assert 'class="depth-0" title=""><a href="/queues/augment/' in page
    assert "vision" not in page


def test_page_shows_shares_and_positions(people: People, as_: As) -> None:
    set_running(people.submit("runs"))
    people.submit("second", priority=1)
    theirs = {"name": "theirs", "priority": 2, "tasks": [{"name": "main", "command": ["true"]}]}
    jobs.submit(spec=JobSpec.parse(theirs), tenant=people.other, user=people.charlie, now=clock.now())
    people.submit("third")
    page = as_(people.alice).get(reverse("queues:detail", args=["default"])).content.decode()
    assert positions(page) == [("2", "second"), ("3", "third")]
    assert positions(as_(people.charlie).get(reverse("queues:detail", args=["default"])).content.decode()) == [
        ("1", "theirs")
    ]
    assert "Pending: 3" in page
    assert "Admitted: 1" in page
    assert ">runs</a>" in page.partition('id="queue-inside"')[2]
    assert "Calculated by the proportion plugin of the cluster" in page
    assert 'aria-label="1 of 4 CPU; 1 CPU deserved"' in page


def test_page_lists_tenants_for_admins_only(people: People, as_: As) -> None:
    address = reverse("queues:detail", args=["default"])
    assert "all tenants" in as_(people.bob).get(address).content.decode()
    queues.change(people.queue, {}, tenants=[people.lab, people.other], by=people.ada, actor=PLATFORM, now=clock.now())
    pages = {user: as_(user).get(address).content.decode() for user in (people.bob, people.ada)}
    assert ["Other" in pages[people.bob], "Other" in pages[people.ada]] == [False, True]


@pytest.mark.parametrize("name", MOST_QUERIES)
def test_query_count_is_constant(
    people: People, as_: As, django_assert_max_num_queries: Callable[[int], Any], name: str
) -> None:
    for number in range(15):
        queues.create(cluster=people.cluster, name=f"q{number}", actor=PLATFORM, now=clock.now())
        people.submit(f"waits-{number}")
        set_running(people.submit(f"runs-{number}"))
    client = as_(people.alice)
    client.get(reverse("accounts:login_sessions"))  # the session records its last use once a minute
    address = reverse(name, args=["default"] if name == "queues:detail" else [])
    client.get(address)  # the process reads the cluster once, then what has changed
    with django_assert_max_num_queries(MOST_QUERIES[name]):
        client.get(address)


def test_draining_queue_counts_remaining_jobs(people: People, as_: As) -> None:
    set_running(people.submit("runs"))
    people.submit("waits")
    ada, address = as_(people.ada), reverse("queues:detail", args=["default"])
    ada.post(reverse("queues:set_state", args=["default"]), {"state": "draining"})
    page = as_(people.bob).get(address).content.decode()
    assert "This queue is draining: 1 job has not finished yet." in page
    assert "1 pending job is not admitted." in page
    assert "phase-draining" in as_(people.bob).get(reverse("queues:list")).content.decode()
    ada.post(reverse("queues:set_state", args=["default"]), {"state": "asleep"})
    people.queue.refresh_from_db()
    assert people.queue.state == "draining"
    ada.post(reverse("queues:set_state", args=["default"]), {"state": "open"})
    assert "draining" not in as_(people.bob).get(address).content.decode()
