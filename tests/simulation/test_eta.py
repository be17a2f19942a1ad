"""When a job will start is said from how long such jobs ran; where too few did, nothing is said."""

from datetime import timedelta

import pytest
from tests.controller.conftest import World
from tests.simulation.conftest import Found, settle, spec, submit

from hekla.apps.forecasts import selectors as forecasts
from hekla.apps.forecasts.models import Forecast
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.submission import new_row
from hekla.apps.priorities.selectors import RequestedPriority
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.simulation import forecasting, snapshot_cache, what_if
from hekla.simulation.runtimes import RuntimeAssumption, RunTimes
from hekla.simulation.what_if import Answer, StartVerdict


def ran(world: World, *minutes: float, kind: str = "training") -> list[Job]:
    """Jobs that completed after so many minutes."""
    now, rows = clock.now(), []
    for number, length in enumerate(minutes):
        wanted = spec(f"{kind}-{number}", kind=kind)
        row = new_row(wanted, RequestedPriority(0), tenant=world.tenant, queue=world.queue, user=world.alice, at=now)
        row.phase, row.gang_phase = "completed", "completed"
        row.started_at, row.finished_at = now - timedelta(minutes=length), now
        rows.append(row)
    snapshot_cache.forget_all()
    return Job.objects.bulk_create(rows)


def ask(world: World, wanted: JobSpec) -> Answer:
    answer = what_if.about_draft(wanted, tenant=world.tenant, user=world.alice)
    assert answer.verdict is StartVerdict.WAITS
    return answer


def minutes(answer: Answer) -> tuple[int, int] | None:
    if answer.eta is None:
        return None
    now = clock.now()
    return tuple(round((at - now).total_seconds() / 60) for at in (answer.eta.earliest, answer.eta.latest))


def test_it_waits_as_long_as_such_jobs_ran(found: Found) -> None:
    world = found({})
    ran(world, 10, 20, 30, 40, 50)
    submit(world, spec("busy", replicas=4))
    settle(world)
    answer = ask(world, spec())
    assert minutes(answer) == (20, 40)
    assert [job.name for job in answer.after.known] == ["busy"]


def test_whoever_is_before_it_in_the_line_goes_first(found: Found) -> None:
    world = found({})
    ran(world, 10, 20, 30, 40, 50)
    submit(world, spec("busy", replicas=4))
    submit(world, spec("next", replicas=4))
    settle(world)
    answer = ask(world, spec(replicas=4))
    assert (minutes(answer), answer.place, answer.line) == ((40, 80), 2, 2)


@pytest.mark.parametrize(("history", "kind"), [((10, 20, 30, 40), "training"), ((10, 20, 30, 40, 50), "other")])
def test_with_too_little_history_no_time_is_given(found: Found, history: tuple[float, ...], kind: str) -> None:
    world = found({})
    ran(world, *history, kind=kind)
    submit(world, spec("busy", replicas=4))
    settle(world)
    answer = ask(world, spec())
    assert (answer.eta, answer.place, answer.line) == (None, 1, 1)


def test_a_deadline_is_known_without_history(found: Found) -> None:
    world = found({})
    submit(world, spec("busy", replicas=4, active_deadline_seconds=600))
    settle(world)
    assert minutes(ask(world, spec())) == (10, 10)


def test_a_job_that_runs_longer_than_all_before_it_ends_nobody_knows_when(found: Found) -> None:
    world = found({})
    job = ran(world, 1)[0]
    times = RunTimes({(job.owner_id, job.kind, job.queue_id): [60.0, 120.0, 180.0, 240.0, 300.0]})
    now = clock.now()
    assert times.end(job, now - timedelta(seconds=301), now, RuntimeAssumption.LONG) is None
    assert times.end(job, now - timedelta(seconds=200), now, RuntimeAssumption.SHORT) == now + timedelta(seconds=55)


def test_a_waiting_job_is_foretold_once(found: Found) -> None:
    world = found({})
    ran(world, 10, 20, 30, 40, 50)
    submit(world, spec("busy", replicas=4))
    job = submit(world, spec("waits"))
    settle(world)
    assert [forecasting.record(world.cluster) for _ in range(2)] == [1, 0]
    forecast = Forecast.objects.get()
    assert forecast.job_id == job.pk
    assert forecast.earliest_at < forecast.latest_at


@pytest.mark.parametrize(
    ("started", "revision", "told"),
    [
        ([5, 5, 5, 5], 1, None),  # too few
        ([5, 5, 5, 5, 50], 1, (4, 5)),
        ([5, 5, 5, None, 50], 1, None),  # one still waits, in time
        ([5, 5, 5, 5, 5], 2, None),  # they were changed meanwhile
    ],
)
def test_how_well_times_held_is_counted(
    found: Found, started: list[int | None], revision: int, told: tuple[int, int] | None
) -> None:
    world = found({})
    now = clock.now()
    for job, minute in zip(ran(world, *[1] * len(started)), started, strict=True):
        job.started_at = None if minute is None else now + timedelta(minutes=minute)
        job.finished_at, job.revision = None, revision
        job.save()
        Forecast.objects.create(job=job, made_at=now, earliest_at=now, latest_at=now + timedelta(minutes=9))
    accuracy = forecasts.accuracy(world.queue.pk)
    assert (accuracy and (accuracy.held, accuracy.cases)) == told
