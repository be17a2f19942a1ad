"""The tabs of a job's page, its grouped events, what it is part of, and Retry."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.batches import services as batches
from hekla.apps.event_log.services import PLATFORM, record, unit_of_work
from hekla.apps.job_history.history import PodStep, TimelineEntry
from hekla.apps.jobs.models import Job
from hekla.domain import events
from hekla.domain.sweeps import SweepSpec
from hekla.lib import clock
from hekla.live import registry
from hekla.pages.jobs import event_groups, tabs

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]


@pytest.mark.parametrize(
    ("query", "opened"),
    [
        ("", "overview"), ("tab=files", "files"), ("tab=nonsense", "overview"), ("log=all", "log"),
        ("events=7", "events"), ("phase=failed", "pods"), ("tab=events&events=7", "events"),
    ],
)  # fmt: skip
def test_address_names_the_open_tab(people: People, as_: As, query: str, opened: str) -> None:
    page = as_(people.bob).get(f"{reverse('jobs:detail', args=[people.submit().uid])}?{query}")
    assert page.context["tab"] == opened
    assert f"tab={opened}" in page.context["live_query"]


@pytest.mark.parametrize("tab", [tabs.OVERVIEW, tabs.LOG, tabs.PODS, tabs.EVENTS])
def test_live_parts_are_those_of_the_open_tab(people: People, as_: As, tab: str) -> None:
    job = people.submit()
    [view] = registry.find("job")
    html = view.render(people.alice, {"uid": str(job.uid), "tab": tab})
    page = as_(people.alice).get(reverse("jobs:detail", args=[job.uid]), {"tab": tab}).content.decode()
    names = {"overview": "job-waiting", "log": "job-logs", "pods": "job-pods", "events": "job-timeline"}
    found = {one for one in names if f'id="{names[one]}"' in html}
    assert tab in found
    assert all(f'id="{names[one]}"' in page for one in found)


def bind(job: Job, count: int, nodes: int) -> None:
    with unit_of_work():
        for index in range(count):
            bound = events.PodBound(task="worker", index=index, attempt=0, node=f"n{index % nodes}")
            record(bound, subject=f"job:{job.uid}", actor=PLATFORM, at=clock.now(), tenant=job.tenant_id)


@pytest.mark.parametrize(("count", "sentence"), [(10, "10 pods placed on 2 nodes."), (2, "worker-1 was bound to n1.")])
def test_events_of_many_pods_are_one_line(people: People, as_: As, count: int, sentence: str) -> None:
    job = people.submit()
    bind(job, count, 2)
    for tab in ("overview", "events"):
        page = as_(people.bob).get(reverse("jobs:detail", args=[job.uid]), {"tab": tab})
        assert sentence in page.content.decode()
    groups = page.context["timeline"]
    assert sum(len(group.members) or 1 for group in groups) == count + 1


def test_group_goes_on_over_other_events_for_a_minute() -> None:
    """A pod's next attempt is in another group."""
    start = clock.now()

    def entry(seconds: int, pod: str = "") -> TimelineEntry:
        step = PodStep("running", pod, "n1") if pod else None
        return TimelineEntry(seconds, start + timedelta(seconds=seconds), "running", pod or "other", "", step)

    entries = [entry(89, "a"), entry(88), entry(87, "b"), entry(86, "c"), entry(85, "a"), entry(30, "d"), entry(5, "e")]
    found = event_groups.grouped(entries)
    assert [(group.entry.number, len(group.members)) for group in found] == [(89, 3), (88, 0), (85, 0), (30, 0), (5, 0)]
    assert found[0].sentence == "3 pods started to run."


def test_retry_submits_the_job_again(people: People, as_: As) -> None:
    job = people.submit("train")
    address = reverse("jobs:retry", args=[job.uid])
    assert address not in as_(people.alice).get(reverse("jobs:detail", args=[job.uid])).content.decode()
    Job.objects.update(phase="failed", finished_at=clock.now())
    page = as_(people.alice).get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert address in page
    assert address not in as_(people.bob).get(reverse("jobs:detail", args=[job.uid])).content.decode()
    answer = as_(people.alice).post(address)
    again = Job.objects.exclude(pk=job.pk).get()
    assert answer["Location"] == reverse("jobs:detail", args=[again.uid])
    assert (again.name, again.spec["tasks"], again.owner) == ("train-1", job.spec["tasks"], people.alice)


def test_job_links_to_its_batch(people: People, as_: As) -> None:
    task = {"name": "main", "command": ["echo", "{{ n }}"], "resources": {"cpu": "1"}}
    sweep = SweepSpec.parse({"name": "many", "parameters": {"n": ["1"]}, "job": {"tasks": [task]}})
    batch = batches.submit_sweep(spec=sweep, tenant=people.lab, user=people.alice, now=clock.now())
    page = as_(people.bob).get(reverse("jobs:detail", args=[Job.objects.get().uid])).content.decode()
    assert f'Batch <a href="{reverse("batches:detail", args=[batch.uid])}">many</a>' in page
