"""The reason ribbon: why a job was pending and when, bounded for any history, and the current reason."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.job_history import ribbon
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.telling import tell
from hekla.domain import events
from hekla.domain.phases import GangPhase, JobPhase

__all__ = ["db", "people", "shared_people"]

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


def unschedulable(reason: dict[str, Any]) -> events.JobUnschedulable:
    return events.JobUnschedulable(reasons=(reason,))


def phase_changed(old: str, new: str) -> events.JobPhaseChanged:
    return events.JobPhaseChanged(old=JobPhase(old), new=JobPhase(new))


def gang_phase_changed(old: str, new: str) -> events.GangPhaseChanged:
    return events.GangPhaseChanged(old=GangPhase(old), new=GangPhase(new))


@pytest.fixture
def job(people: People) -> Job:
    job = people.submit()
    job.submitted_at = START
    job.save()
    return job


def record_history(job: Job, *history: tuple[float, events.Event]) -> None:
    with unit_of_work():
        for seconds, event in history:
            tell(job, event, actor=CONTROLLER, now=at(seconds))


def cells_of(job: Job, now: float) -> list[tuple[float, float, str, bool]]:
    cells = ribbon.of(job, selectors.course(job), now=at(now)).cells
    return [
        ((cell.begin - START).total_seconds(), (cell.end - START).total_seconds(), cell.kind, cell.is_admitted)
        for cell in cells
    ]


ADMISSION = (
    gang_phase_changed("pending", "inqueue"),
    gang_phase_changed("inqueue", "running"),
    phase_changed("pending", "running"),
)


@pytest.mark.parametrize(
    ("history", "now", "expected"),
    [
        pytest.param([], 5, [(0, 5, "unsaid", False)], id="no reason yet"),
        pytest.param([(1, unschedulable(FULL))], 9, [(0, 9, "capacity", False)], id="short gap before a reason"),
        pytest.param(
            [(10, unschedulable(FULL)), (20, unschedulable(MORE)), (30, unschedulable(SHARE))],
            40,
            [(0, 10, "unsaid", False), (10, 30, "capacity", False), (30, 40, "quota", False)],
            id="equal neighbours are merged",
        ),
        pytest.param(
            [
                (0, unschedulable(SHARE)),
                (10, ADMISSION[0]),
                (10, unschedulable(FULL)),
                (30, ADMISSION[1]),
                (33, ADMISSION[2]),
            ],
            60,
            [
                (0, 10, "quota", False),
                (10, 30, "capacity", True),
                (30, 33, "starting", True),
                (33, 60, "running", True),
            ],
            id="admitted, placed, running",
        ),
        pytest.param(
            [
                (5, phase_changed("pending", "running")),
                (50, phase_changed("running", "restarting")),
                (52, unschedulable(FULL)),
            ],
            60,
            [
                (0, 5, "unsaid", False),
                (5, 50, "running", False),
                (50, 52, "unsaid", False),
                (52, 60, "capacity", False),
            ],
            id="pending again after a restart",
        ),
    ],
)
def test_cells_show_reasons_over_time(
    job: Job, history: list[tuple[float, events.Event]], now: float, expected: list[tuple[float, float, str, bool]]
) -> None:
    record_history(job, *history)
    assert cells_of(job, now) == expected


def test_figures_are_current(job: Job) -> None:
    record_history(job, (0, unschedulable(FULL)))
    job.waiting = [MORE]
    (cell,) = ribbon.of(job, selectors.course(job), now=at(65)).cells
    assert cell.words == "1 min 5 s: Waiting for 8 CPU. Running and admitted jobs leave 0 CPU."
    assert ribbon.of(job, selectors.course(job), now=at(65)).sentence == cell.sentence


def test_finished_job_is_not_pending(job: Job) -> None:
    record_history(
        job,
        (0, unschedulable(FULL)),
        (90, phase_changed("pending", "running")),
        (95, phase_changed("running", "completed")),
    )
    job.phase = "completed"
    found = ribbon.of(job, selectors.course(job), now=at(9000))
    assert [cell.kind for cell in found.cells] == ["capacity", "running"]
    assert found.sentence == "Pending for 1 min 30 s in total. Not pending now."


@pytest.mark.parametrize("changes", [30, 200, 1000])
def test_size_and_query_count_are_bounded(
    job: Job, changes: int, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    record_history(job, *((n * 10, unschedulable((FULL, SHARE)[n % 2])) for n in range(changes)))
    with django_assert_max_num_queries(1):
        found = ribbon.of(job, selectors.course(job), now=at(changes * 10))
    assert len(found.cells) <= ribbon.MOST_CELLS
    assert found.cells[0].begin == START
    assert found.waited_seconds == changes * 10
    assert all(cell.width >= 10 for cell in found.cells)
    assert abs(sum(cell.width for cell in found.cells) - 1000) < 5


def test_page_shows_the_ribbon_with_a_table(job: Job, people: People, as_: As) -> None:
    record_history(job, (0, unschedulable(SHARE)))
    page = as_(people.alice).get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert "Pending time" in page
    assert 'class="reason-quota"' in page
    assert 'id="ribbon-table"' in page


def test_many_short_waits_are_shown(job: Job) -> None:
    record_history(
        job,
        (0, unschedulable(FULL)),
        (1, unschedulable(SHARE)),
        (2, unschedulable(FULL)),
        (3, phase_changed("pending", "running")),
    )
    job.phase = "running"
    assert ribbon.of(job, selectors.course(job), now=at(60)).says_something


def test_no_ribbon_for_an_immediate_start(people: People, as_: As) -> None:
    job = people.submit()
    record_history(job, (0, phase_changed("pending", "running")))
    Job.objects.update(phase="running", submitted_at=START)
    assert 'id="job-ribbon-card"' not in as_(people.alice).get(reverse("jobs:detail", args=[job.uid])).content.decode()


def test_ribbon_over_rest(job: Job, people: People, as_: As) -> None:
    record_history(job, (0, unschedulable(SHARE)))
    address = reverse("api:v1:job_waits", args=[job.uid])
    answer = as_(people.alice).get(address).json()
    (cell,) = answer["cells"]
    assert (cell["kind"], cell["plugin"], cell["code"]) == ("quota", "proportion", "queue_overused")
    assert answer["sentence"]
    assert as_(people.charlie).get(address).status_code == 404
