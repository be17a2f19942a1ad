"""The combined log view of a job with many pods: filters and pages."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Job, Pod
from hekla.lib import clock
from hekla.live import registry
from hekla.pages.jobs.merged_logs import PAGE

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]


@pytest.fixture
def job(people: People) -> Job:
    """One parameter server and forty workers; the last two failed."""
    tasks = [{"name": name, "replicas": count, "command": ["true"]} for name, count in (("ps", 1), ("worker", 40))]
    job, now = people.submit("train", tasks=tasks), clock.now()
    facts = {"attempt": 1, "version": 1, "address": "127.0.0.1", "created_at": now, "started_at": now}
    names = [("ps", 0), *(("worker", index) for index in range(40))]
    Pod.objects.bulk_create(
        Pod(job=job, task=task, index=index, slot=slot, phase="failed" if index > 37 else "running", **facts)
        for slot, (task, index) in enumerate(names)
    )
    return job


@pytest.mark.parametrize(
    ("query", "names", "count"),
    [
        ("", ["ps-0", *(f"worker-{index}" for index in range(PAGE - 1))], 41),
        ("&log_page=3", [f"worker-{index}" for index in range(31, 40)], 41),
        ("&log_page=99", [f"worker-{index}" for index in range(31, 40)], 41),
        ("&log_task=ps", ["ps-0"], 1),
        ("&log_task=worker&log_index=38-45, 2", ["worker-2", "worker-38", "worker-39"], 3),
        ("&log_failed=on", ["worker-38", "worker-39"], 2),
        ("&log_failed=on&log_index=0", [""], 0),
    ],
)
def test_filters_choose_the_pods(people: People, as_: As, job: Job, query: str, names: list[str], count: int) -> None:
    page = as_(people.bob).get(f"{reverse('jobs:detail', args=[job.uid])}?log=all{query}")
    logs = page.context["all_logs"]
    assert (logs.names.split(","), logs.count) == (names, count)
    assert ("No pods match these filters." in page.content.decode()) is (count == 0)


def test_pages_keep_the_filters(people: People, as_: As, job: Job) -> None:
    address = reverse("jobs:detail", args=[job.uid])
    page = as_(people.alice).get(f"{address}?log=all&log_task=worker")
    assert "pods 1 to 16 of 40" in page.content.decode()
    next_page = as_(people.alice).get(f"{address}?{page.context['all_logs'].next}")
    assert next_page.context["all_logs"].names.split(",")[0] == "worker-16"
    assert next_page.context["all_logs"].previous == "log=all&log_task=worker"
    assert "&amp;log=all&amp;log_task=worker&amp;log_page=2" in next_page.content.decode()


@pytest.mark.parametrize("query", ["log_index=some", "log_index=9-", "log_task=other"])
def test_invalid_filters_are_reported(people: People, as_: As, job: Job, query: str) -> None:
    page = as_(people.alice).get(f"{reverse('jobs:detail', args=[job.uid])}?log=all&{query}")
    assert page.context["all_logs"].ids == ""
    assert 'class="problem"' in page.content.decode()


def test_live_view_keeps_the_filters(people: People, job: Job) -> None:
    params = {"uid": str(job.uid), "log": "all", "log_failed": "on"}
    [view] = registry.find("job")
    assert 'data-log-names="worker-38,worker-39"' in view.render(people.alice, params)
