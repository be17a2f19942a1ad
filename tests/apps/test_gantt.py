"""The timeline of a job: bars for each pod, bounded for any job size, and the same as text."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import gantt, waits
from hekla.apps.jobs.models import Job, Pod
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
FULL = {
    "cause": "capacity", "action": "allocate", "plugin": "", "code": "cluster_is_full", "need": {"cpu": "4"},
    "have": {}, "tasks": 1, "nodes": {}, "ever": True,
}  # fmt: skip
SHARE = {**FULL, "cause": "quota", "code": "queue_overused"}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def event(kind: str, seconds: float, **payload: Any) -> LoggedEvent:
    return LoggedEvent(kind=kind, at=at(seconds), subject="", actor_name="", topics=[], payload=payload)


def phase_changed(new: str, seconds: float) -> LoggedEvent:
    return event("JobPhaseChanged", seconds, new=new)


def unschedulable(seconds: float, *reasons: dict[str, Any]) -> LoggedEvent:
    return event("JobUnschedulable", seconds, reasons=list(reasons))


def a_job(**changes: Any) -> Job:
    return Job(name="one", phase="pending", submitted_at=START, **changes)


def offsets(stretches: Any) -> list[tuple[float, float | None, str]]:
    return [
        ((s.begin - START).total_seconds(), (s.end - START).total_seconds() if s.end else None, s.cause)
        for s in stretches
    ]


def test_stretch_ends_with_the_next_reason_or_phase() -> None:
    events = [unschedulable(10, FULL), unschedulable(20, SHARE), phase_changed("running", 50)]
    assert offsets(waits.stretches(a_job(), events)) == [(10, 20, "capacity"), (20, 50, "quota")]


def test_repeated_cause_is_one_stretch() -> None:
    assert offsets(waits.stretches(a_job(), [unschedulable(10, FULL), unschedulable(20, FULL)])) == [
        (10, None, "capacity")
    ]


def test_current_reason_comes_from_the_job_row() -> None:
    events = [unschedulable(10, FULL), phase_changed("running", 50)]
    job = a_job(waiting=[SHARE])
    assert offsets(waits.stretches(job, events)) == [(10, 50, "capacity"), (50, None, "quota")]
    job.phase = "completed"
    assert offsets(waits.stretches(job, events)) == [(10, 50, "capacity")]


def test_interval_is_cut_by_cause() -> None:
    stretches = [waits.WaitInterval(at(10), at(20), "capacity"), waits.WaitInterval(at(25), None, "quota")]
    assert offsets(waits.cut(at(5), at(30), stretches)) == [
        (5, 10, ""), (10, 20, "capacity"), (20, 25, ""), (25, 30, "quota"),
    ]  # fmt: skip
    assert offsets(waits.cut(at(12), at(15), stretches)) == [(12, 15, "capacity")]
    assert offsets(waits.cut(at(12), at(12), stretches)) == []


def test_the_phases_of_a_job_follow_one_another() -> None:
    stays = waits.stays(
        a_job(), [phase_changed("running", 30), phase_changed("restarting", 60), phase_changed("running", 61)]
    )
    assert [(stay.phase, stay.end and (stay.end - START).total_seconds()) for stay in stays] == [
        ("pending", 30), ("running", 60), ("restarting", 61), ("running", None),
    ]  # fmt: skip


def a_pod(job: Job, index: int = 0, *, attempt: int = 1, phase: str = "running", **times: float) -> Pod:
    instants = {f"{name}_at": at(seconds) for name, seconds in times.items()}
    return Pod.objects.create(
        job=job, task="main", index=index, attempt=attempt, version=1, slot=index, address="", phase=phase,
        node="n1", **{"created_at": START, **instants},
    )  # fmt: skip


def chart(job: Job, *, now: float, **params: str) -> dict[str, Any]:
    return gantt.chart(job, params, now=at(now))


def bars(row: gantt.GanttRow) -> list[tuple[float, float, str]]:
    return [(bar.start, bar.width, bar.kind) for bar in row.bars]


@pytest.fixture
def job(people: People) -> Job:
    made = people.submit()
    Job.objects.filter(pk=made.pk).update(submitted_at=START)
    return Job.objects.get(pk=made.pk)


def test_row_shows_the_states_of_each_attempt(job: Job) -> None:
    append_events(job, [unschedulable(0, FULL), phase_changed("running", 30)])
    a_pod(job, phase="failed", bound=20, started=30, finished=60)
    a_pod(job, attempt=2, created=60, bound=70, started=70)
    _job, row = chart(job, now=100)["rows"]
    assert bars(row) == [
        (0, 200, "waiting reason-capacity"), (200, 100, "starting"), (300, 300, "failed"),
        (600, 100, "waiting"), (700, 1.5, "starting"), (700, 300, "running"),
    ]  # fmt: skip
    assert (row.name, row.attempts, row.look) == ("main-0", 2, "running")
    assert row.words == (
        "attempt 1, waited 20 s, ran for 30 s, n1, Failed; attempt 2, waited 10 s, ran for 30 s, n1, Running"
    )
    assert "Running and admitted jobs leave 0 CPU" in row.bars[0].words


def append_events(job: Job, new_events: Iterable[LoggedEvent]) -> None:
    """Add these events at the end of the event log."""
    events = list(new_events)
    for number, one in enumerate(events, start=10**6 + LoggedEvent.objects.count()):
        one.pk, one.subject = number, f"job:{job.uid}"
    LoggedEvent.objects.bulk_create(events)


def test_first_row_is_the_job(job: Job) -> None:
    append_events(job, [unschedulable(5, SHARE), phase_changed("running", 50)])
    job.phase = "running"
    (row,) = chart(job, now=100)["rows"]
    assert bars(row) == [(0, 50, "waiting"), (50, 450, "waiting reason-quota"), (500, 500, "running")]


def test_failed_start_and_stopped_pod_differ(job: Job) -> None:
    refused = a_pod(job, 0, phase="failed", bound=10, finished=20)
    stopped = a_pod(job, 1, phase="failed", bound=10, started=20, finished=100)
    Pod.objects.filter(pk=stopped.pk).update(stopping=True, reason="Stopped")
    _job, first, second = chart(job, now=100)["rows"]
    assert [kind for _s, _w, kind in bars(first)] == ["waiting", "starting", "failed"]
    assert [kind for _s, _w, kind in bars(second)] == ["waiting", "starting", "stopped"]
    assert (first.pod_id, first.outcome, second.outcome) == (refused.pk, "Failed", "Stopped")
    assert (first.look, second.look) == ("failed", "terminated")


def test_timeline_can_begin_at_the_start(job: Job) -> None:
    job.started_at = at(50)
    a_pod(job, bound=40, started=50)
    _job, row = chart(job, now=100, since="start")["rows"]
    assert bars(row)[-1] == (0, 1000, "running")


@pytest.mark.parametrize(
    ("params", "first", "last", "count"),
    [
        ({}, 1, 25, 60), ({"pods": "3"}, 51, 60, 60), ({"pods": "99"}, 51, 60, 60), ({"pods": "x"}, 1, 25, 60),
        ({"phase": "failed"}, 1, 12, 12), ({"task": "nobody"}, 1, 0, 0), ({"node": "n1"}, 1, 20, 20),
    ],
)  # fmt: skip
def test_one_page_of_pods_is_drawn(job: Job, params: dict[str, str], first: int, last: int, count: int) -> None:
    _many(job, 60)
    found = chart(job, now=100, **params)
    chosen = found["chosen"]
    assert (chosen.first, chosen.last, chosen.count) == (first, last, count)
    assert len(found["rows"]) - 1 == max(0, last - first + 1)
    assert dict(chosen.phases) == {"running": 48, "failed": 12}
    assert chosen.nodes == ["n0", "n1", "n2"]


def _many(job: Job, count: int) -> None:
    Pod.objects.bulk_create(
        Pod(
            job=job, task="main", index=index, attempt=1, version=1, slot=index, address="",
            phase="running" if index % 5 else "failed", node=f"n{index % 3}",
            created_at=START, bound_at=START, started_at=START,
        )
        for index in range(count)
    )  # fmt: skip


@pytest.mark.parametrize("name", ["jobs:detail", "jobs:timeline"])
def test_query_count_is_constant(
    people: People, as_: As, job: Job, django_assert_max_num_queries: Callable[[int], Any], name: str
) -> None:
    _many(job, 1000)
    noise = {"task": "main", "attempt": 1, "old": "bound", "new": "running", "reason": "", "message": "", "node": "n1"}
    append_events(job, (event("PodPhaseChanged", n, **noise, index=n % 1000, exit_code=None) for n in range(3000)))
    append_events(job, (unschedulable(n, (FULL, SHARE)[n % 2]) for n in range(500)))
    client, address = as_(people.alice), reverse(name, args=[job.uid]) + "?tab=pods"
    client.get(reverse("jobs:list"))  # the first request of a session records it
    with django_assert_max_num_queries(12):
        page = client.get(address).content.decode()
    assert len(re.findall(r'class="gantt-row"', page)) == 25
    if name == "jobs:detail":
        assert "pods 1 to 25 of 1000" in page
        assert page.count('<tr id="pod-') == 25


def test_bars_have_text_alternatives(people: People, as_: As, job: Job) -> None:
    a_pod(job, bound=1, started=2)
    page = as_(people.alice).get(reverse("jobs:timeline", args=[job.uid])).content.decode()
    words = re.search(r'aria-label="(attempt 1[^"]*)"', page)
    assert words
    assert f"<dd>{words[1]}</dd>" in page


def test_timeline_refreshes_until_the_job_ends(people: People, as_: As, job: Job) -> None:
    address = reverse("jobs:timeline", args=[job.uid])
    page = as_(people.alice).get(address, {"phase": "failed", "other": "x"}).content.decode()
    assert f'data-refresh="{address}?phase=failed"' in page
    Job.objects.filter(pk=job.pk).update(phase="completed", finished_at=clock.now())
    assert "data-refresh" not in as_(people.alice).get(address).content.decode()


def test_table_has_the_pods_of_the_timeline_by_task(people: People, as_: As, job: Job) -> None:
    _many(job, 30)
    Pod.objects.filter(job=job, index__lt=10).update(task="ps")
    address = reverse("jobs:detail", args=[job.uid])
    page = as_(people.alice).get(address, {"phase": "failed", "node": "n0"}).content.decode()
    names = ["main-15", "ps-0"]
    assert re.findall(r'<tr id="pod-\d+"><th scope="row"><a [^>]*>([^<]+)', page) == names
    assert re.findall(r'class="gantt-name" href="[^"]*">([^<]+)', page) == names
    assert re.findall(r'scope="rowgroup">(\w+)', page) == ["main", "ps"]
    assert 'data-live-query="view=job&amp;uid=' in page
    assert "phase=failed&amp;node=n0" in page
    assert "No pods match" in as_(people.alice).get(address, {"node": "n9"}).content.decode()


def test_the_start_of_the_timeline_keeps_the_filters_of_the_pods(people: People, as_: As, job: Job) -> None:
    Job.objects.update(phase="running", started_at=START)
    address = reverse("jobs:detail", args=[job.uid])
    page = as_(people.alice).get(f"{address}?tab=pods&phase=running").content.decode()
    assert 'href="?tab=pods&amp;phase=running&amp;since=start#job-gantt"' in page
    page = as_(people.alice).get(f"{address}?tab=pods&phase=running&since=start").content.decode()
    assert 'href="?tab=pods&amp;phase=running"' in page
