"""The reason ribbon: what was in the way of a job when, bounded whatever its history, and what is true now."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.job_history import ribbon
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.telling import tell
from hekla.domain import events
from hekla.domain.phases import GangPhase, JobPhase

As = Callable[[User], Client]
START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
FULL = {
    "cause": "capacity", "action": "allocate", "plugin": "", "code": "cluster_is_full", "need": {"cpu": "4"},
    "have": {}, "tasks": 1, "nodes": {}, "ever": True,
}  # fmt: skip
SHARE = {**FULL, "cause": "quota", "plugin": "proportion", "code": "queue_overused"}
MORE = {**FULL, "need": {"cpu": "8"}}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def waits(reason: dict[str, Any]) -> events.JobUnschedulable:
    return events.JobUnschedulable(reasons=(reason,))


def became(old: str, new: str) -> events.JobPhaseChanged:
    return events.JobPhaseChanged(old=JobPhase(old), new=JobPhase(new))


def gang(old: str, new: str) -> events.GangPhaseChanged:
    return events.GangPhaseChanged(old=GangPhase(old), new=GangPhase(new))


@pytest.fixture
def job(people: People) -> Job:
    job = people.submit()
    job.submitted_at = START
    job.save()
    return job


def happened(job: Job, *story: tuple[float, events.Event]) -> None:
    with unit_of_work():
        for seconds, event in story:
            tell(job, event, actor=CONTROLLER, now=at(seconds))


def told(job: Job, now: float) -> list[tuple[float, float, str, bool]]:
    cells = ribbon.of(job, selectors.course(job), now=at(now)).cells
    return [
        ((cell.begin - START).total_seconds(), (cell.end - START).total_seconds(), cell.kind, cell.is_admitted)
        for cell in cells
    ]


LET_IN = (gang("pending", "inqueue"), gang("inqueue", "running"), became("pending", "running"))


@pytest.mark.parametrize(
    ("story", "now", "want"),
    [
        pytest.param([], 5, [(0, 5, "unsaid", False)], id="nobody looked yet"),
        pytest.param([(1, waits(FULL))], 9, [(0, 9, "capacity", False)], id="a short silence belongs to the reason"),
        pytest.param(
            [(10, waits(FULL)), (20, waits(MORE)), (30, waits(SHARE))],
            40,
            [(0, 10, "unsaid", False), (10, 30, "capacity", False), (30, 40, "quota", False)],
            id="equal neighbours are one",
        ),
        pytest.param(
            [(0, waits(SHARE)), (10, LET_IN[0]), (10, waits(FULL)), (30, LET_IN[1]), (33, LET_IN[2])],
            60,
            [
                (0, 10, "quota", False),
                (10, 30, "capacity", True),
                (30, 33, "starting", True),
                (33, 60, "running", True),
            ],
            id="let in, then placed, then at work",
        ),
        pytest.param(
            [(5, became("pending", "running")), (50, became("running", "restarting")), (52, waits(FULL))],
            60,
            [
                (0, 5, "unsaid", False),
                (5, 50, "running", False),
                (50, 52, "unsaid", False),
                (52, 60, "capacity", False),
            ],
            id="it waits again after a restart",
        ),
    ],
)
def test_what_was_in_the_way_when(
    job: Job, story: list[tuple[float, events.Event]], now: float, want: list[tuple[float, float, str, bool]]
) -> None:
    happened(job, *story)
    assert told(job, now) == want


def test_the_numbers_are_the_newest_ones(job: Job) -> None:
    happened(job, (0, waits(FULL)))
    job.waiting = [MORE]
    (cell,) = ribbon.of(job, selectors.course(job), now=at(65)).cells
    assert cell.words == "1 min 5 s: Waiting for 8 CPU. The cluster has none free."
    assert ribbon.of(job, selectors.course(job), now=at(65)).sentence == cell.sentence


def test_a_job_that_is_over_waits_for_nothing(job: Job) -> None:
    happened(job, (0, waits(FULL)), (90, became("pending", "running")), (95, became("running", "completed")))
    job.phase = "completed"
    found = ribbon.of(job, selectors.course(job), now=at(9000))
    assert [cell.kind for cell in found.cells] == ["capacity", "running"]
    assert found.sentence == "Pending for 1 min 30 s in total. Not pending now."


@pytest.mark.parametrize("changes", [30, 200, 1000])
def test_its_size_and_its_cost_do_not_grow_with_the_history(
    job: Job, changes: int, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    happened(job, *((n * 10, waits((FULL, SHARE)[n % 2])) for n in range(changes)))
    with django_assert_max_num_queries(1):
        found = ribbon.of(job, selectors.course(job), now=at(changes * 10))
    assert len(found.cells) <= ribbon.MOST_CELLS
    assert found.cells[0].begin == START
    assert found.waited_seconds == changes * 10
    assert all(cell.width >= 10 for cell in found.cells)
    assert abs(sum(cell.width for cell in found.cells) - 1000) < 5


def test_the_page_shows_it_with_a_table(job: Job, people: People, as_: As) -> None:
    happened(job, (0, waits(SHARE)))
    page = as_(people.alice).get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert "Pending reason" in page
    assert 'class="reason-quota"' in page
    assert 'id="ribbon-table"' in page


def test_many_short_waits_are_worth_showing_too(job: Job) -> None:
    happened(job, (0, waits(FULL)), (1, waits(SHARE)), (2, waits(FULL)), (3, became("pending", "running")))
    job.phase = "running"
    assert ribbon.of(job, selectors.course(job), now=at(60)).says_something


def test_a_job_that_starts_at_once_has_none(people: People, as_: As) -> None:
    job = people.submit()
    happened(job, (0, became("pending", "running")))
    Job.objects.update(phase="running", submitted_at=START)
    assert 'id="job-ribbon-card"' not in as_(people.alice).get(reverse("jobs:detail", args=[job.uid])).content.decode()


def test_programs_are_told_the_same(job: Job, people: People, as_: As) -> None:
    happened(job, (0, waits(SHARE)))
    address = reverse("api:v1:job_waits", args=[job.uid])
    answer = as_(people.alice).get(address).json()
    (cell,) = answer["cells"]
    assert (cell["kind"], cell["plugin"], cell["code"]) == ("quota", "proportion", "queue_overused")
    assert answer["sentence"]
    assert as_(people.charlie).get(address).status_code == 404
