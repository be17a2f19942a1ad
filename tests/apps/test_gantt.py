"""The timeline of a job: what each pod did when, bounded whatever the job's size, and the same in words."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import gantt, waits
from hekla.apps.jobs.models import Job, Pod
from hekla.lib import clock

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


def became(new: str, seconds: float) -> LoggedEvent:
    return event("JobPhaseChanged", seconds, new=new)


def says(seconds: float, *reasons: dict[str, Any]) -> LoggedEvent:
    return event("JobUnschedulable", seconds, reasons=list(reasons))


def a_job(**changes: Any) -> Job:
    return Job(name="one", phase="pending", submitted_at=START, **changes)


def told(stretches: Any) -> list[tuple[float, float | None, str]]:
    return [
        ((s.begin - START).total_seconds(), (s.end - START).total_seconds() if s.end else None, s.cause)
        for s in stretches
    ]


def test_a_stretch_of_waiting_ends_with_the_next_reason_or_when_the_job_moves() -> None:
    events = [says(10, FULL), says(20, SHARE), became("running", 50)]
    assert told(waits.stretches(a_job(), events)) == [(10, 20, "capacity"), (20, 50, "quota")]


def test_the_same_cause_with_other_words_is_one_stretch() -> None:
    assert told(waits.stretches(a_job(), [says(10, FULL), says(20, FULL)])) == [(10, None, "capacity")]


def test_what_a_job_waits_for_now_is_known_by_its_row_although_the_log_tells_it_no_more() -> None:
    events = [says(10, FULL), became("running", 50)]
    job = a_job(waiting=[SHARE])
    assert told(waits.stretches(job, events)) == [(10, 50, "capacity"), (50, None, "quota")]
    job.phase = "completed"
    assert told(waits.stretches(job, events)) == [(10, 50, "capacity")]


def test_a_time_is_cut_where_the_cause_changes_and_has_none_where_nobody_said() -> None:
    stretches = [waits.Stretch(at(10), at(20), "capacity"), waits.Stretch(at(25), None, "quota")]
    assert told(waits.cut(at(5), at(30), stretches)) == [
        (5, 10, ""), (10, 20, "capacity"), (20, 25, ""), (25, 30, "quota"),
    ]  # fmt: skip
    assert told(waits.cut(at(12), at(15), stretches)) == [(12, 15, "capacity")]
    assert told(waits.cut(at(12), at(12), stretches)) == []


def test_the_phases_of_a_job_follow_one_another() -> None:
    stays = waits.stays(a_job(), [became("running", 30), became("restarting", 60), became("running", 61)])
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


def test_a_row_shows_waiting_by_cause_starting_running_and_the_end_of_each_attempt(job: Job) -> None:
    keep(job, [says(0, FULL), became("running", 30)])
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
    assert "The cluster has none free" in row.bars[0].words


def keep(job: Job, told: Iterable[LoggedEvent]) -> None:
    """Into the log, behind all that stands there."""
    events = list(told)
    for number, one in enumerate(events, start=10**6 + LoggedEvent.objects.count()):
        one.pk, one.subject = number, f"job:{job.uid}"
    LoggedEvent.objects.bulk_create(events)


def test_the_first_row_is_the_job_s_own(job: Job) -> None:
    keep(job, [says(5, SHARE), became("running", 50)])
    job.phase = "running"
    (row,) = chart(job, now=100)["rows"]
    assert bars(row) == [(0, 50, "waiting"), (50, 450, "waiting reason-quota"), (500, 500, "running")]


def test_a_pod_that_never_started_and_one_that_was_stopped_are_told_apart(job: Job) -> None:
    refused = a_pod(job, 0, phase="failed", bound=10, finished=20)
    stopped = a_pod(job, 1, phase="failed", bound=10, started=20, finished=100)
    Pod.objects.filter(pk=stopped.pk).update(stopping=True, reason="Stopped")
    _job, first, second = chart(job, now=100)["rows"]
    assert [kind for _s, _w, kind in bars(first)] == ["waiting", "starting", "failed"]
    assert [kind for _s, _w, kind in bars(second)] == ["waiting", "starting", "stopped"]
    assert (first.pod_id, first.outcome, second.outcome) == (refused.pk, "Failed", "Stopped")
    assert (first.look, second.look) == ("failed", "terminated")


def test_it_may_begin_where_the_job_did(job: Job) -> None:
    job.started_at = at(50)
    a_pod(job, bound=40, started=50)
    _job, row = chart(job, now=100, since="start")["rows"]
    assert bars(row)[-1] == (0, 1000, "running")


@pytest.mark.parametrize(
    ("params", "first", "last", "count"),
    [
        ({}, 1, 100, 250), ({"pods": "3"}, 201, 250, 250), ({"pods": "99"}, 201, 250, 250),
        ({"pods": "x"}, 1, 100, 250), ({"phase": "failed"}, 1, 50, 50), ({"task": "nobody"}, 1, 0, 0),
    ],
)  # fmt: skip
def test_at_most_a_hundred_pods_are_drawn(job: Job, params: dict[str, str], first: int, last: int, count: int) -> None:
    _many(job, 250)
    found = chart(job, now=100, **params)
    assert (found["first"], found["last"], found["count"]) == (first, last, count)
    assert len(found["rows"]) - 1 == max(0, last - first + 1)
    assert {one["value"]: one["count"] for one in found["phases"]} == {"running": 200, "failed": 50}


def _many(job: Job, count: int) -> None:
    Pod.objects.bulk_create(
        Pod(
            job=job, task="main", index=index, attempt=1, version=1, slot=index, address="",
            phase="running" if index % 5 else "failed", created_at=START, bound_at=START, started_at=START,
        )
        for index in range(count)
    )  # fmt: skip


@pytest.mark.parametrize("name", ["jobs:detail", "jobs:timeline"])
def test_a_large_job_asks_the_database_no_more_than_a_small_one(
    people: People, as_: As, job: Job, django_assert_max_num_queries: Callable[[int], Any], name: str
) -> None:
    _many(job, 1000)
    noise = {"task": "main", "attempt": 1, "old": "bound", "new": "running", "reason": "", "message": "", "node": "n1"}
    keep(job, (event("PodPhaseChanged", n, **noise, index=n % 1000, exit_code=None) for n in range(3000)))
    keep(job, (says(n, (FULL, SHARE)[n % 2]) for n in range(500)))
    client, address = as_(people.alice), reverse(name, args=[job.uid])
    with django_assert_max_num_queries(18):
        page = client.get(address).content.decode()
    assert len(re.findall(r'class="gantt-row"', page)) == 100
    assert "pods 1 to 100 of 1000" in page


def test_one_who_cannot_see_it_reads_the_same_in_words(people: People, as_: As, job: Job) -> None:
    a_pod(job, bound=1, started=2)
    page = as_(people.alice).get(reverse("jobs:timeline", args=[job.uid])).content.decode()
    words = re.search(r'aria-label="(attempt 1[^"]*)"', page)
    assert words
    assert f"<dd>{words[1]}</dd>" in page


def test_a_timeline_asks_for_itself_again_until_the_job_is_over(people: People, as_: As, job: Job) -> None:
    address = reverse("jobs:timeline", args=[job.uid])
    page = as_(people.alice).get(address, {"phase": "failed", "other": "x"}).content.decode()
    assert f'data-refresh="{address}?phase=failed"' in page
    Job.objects.filter(pk=job.pk).update(phase="completed", finished_at=clock.now())
    assert "data-refresh" not in as_(people.alice).get(address).content.decode()
