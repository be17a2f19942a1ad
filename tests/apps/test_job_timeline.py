"""The events on the page of a job come in pages of bounded size."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM, record, unit_of_work
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job
from hekla.domain import events
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

pytestmark = pytest.mark.django_db
PAGE = 200


def numbers(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'id="event-(\d+)"', page)]


def add_events(job: Job, count: int) -> None:
    command = events.JobCommanded(action=LifecycleAction.RESTART_JOB, task="", index=None)
    with unit_of_work():
        for _ in range(count):
            record(command, subject=f"job:{job.uid}", actor=PLATFORM, at=clock.now(), tenant=job.tenant_id)


def test_events_are_paged_without_gap(people: People, as_: Callable[[User], Client]) -> None:
    job, alice = people.submit(), as_(people.alice)
    add_events(job, 450)
    known = [event.pk for event in selectors.history(job)]
    page, found = alice.get(f"/jobs/{job.uid}/?tab=events").content.decode(), list[int]()
    sizes = [len(numbers(page))]
    found += numbers(page)
    while older := re.search(r'href="(\?events=\d+)#job-timeline"', page):
        page = alice.get(f"/jobs/{job.uid}/{older[1]}").content.decode()
        sizes.append(len(numbers(page)))
        found += numbers(page)
        assert "Newest events" in page
    assert max(sizes) <= PAGE
    assert found == sorted(known, reverse=True)


@pytest.mark.parametrize("value", ["all", "x", "-1", "9" * 40])
def test_unknown_page_is_the_newest(people: People, as_: Callable[[User], Client], value: str) -> None:
    job, alice = people.submit(), as_(people.alice)
    add_events(job, 450)
    assert len(numbers(alice.get(f"/jobs/{job.uid}/?events={value}").content.decode())) == PAGE
