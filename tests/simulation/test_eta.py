"""The estimated start of a job, from run times of similar jobs; none if there are too few."""

import re
from datetime import timedelta

import pytest
from tests.controller.conftest import World
from tests.simulation.conftest import WorldFactory, settle, spec, submit

from hekla.apps.batches.models import Batch, BatchJob
from hekla.apps.forecasts import selectors as forecasts
from hekla.apps.forecasts.models import Forecast
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.submission import new_row
from hekla.apps.priorities.selectors import RequestedPriority
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.simulation import descriptions, forecasting, snapshot_cache, what_if
from hekla.simulation.runtimes import RuntimeAssumption, RunTimes, key_of
from hekla.simulation.what_if import StartVerdict, WhatIfResult


def completed_jobs(world: World, *run_minutes: float, kind: str = "training") -> list[Job]:
    """Completed jobs with these run times."""
    now, rows = clock.now(), []
    for number, length in enumerate(run_minutes):
        job_spec = spec(f"{kind}-{number}", kind=kind)
        row = new_row(job_spec, RequestedPriority(0), tenant=world.tenant, queue=world.queue, user=world.alice, at=now)
        row.phase, row.gang_phase = "completed", "completed"
        row.started_at, row.finished_at = now - timedelta(minutes=length), now
        rows.append(row)
    snapshot_cache.forget_all()
    return Job.objects.bulk_create(rows)


def preview(world: World, job_spec: JobSpec) -> WhatIfResult:
    answer = what_if.predict_draft(job_spec, tenant=world.tenant, user=world.alice)
    assert answer.verdict is StartVerdict.WAITS
    return answer


def eta_in_minutes(answer: WhatIfResult) -> tuple[int, int] | None:
    if answer.eta is None:
        return None
    now = clock.now()
    return tuple(round((at - now).total_seconds() / 60) for at in (answer.eta.earliest, answer.eta.latest))


def test_eta_is_the_run_time_of_similar_jobs(found: WorldFactory) -> None:
    world = found({})
    completed_jobs(world, 10, 20, 30, 40, 50)
    submit(world, spec("busy", replicas=4))
    settle(world)
    answer = preview(world, spec())
    assert eta_in_minutes(answer) == (12, 67)
    assert [job.name for job in answer.after.known] == ["busy"]


def test_eta_counts_jobs_ahead_in_the_queue(found: WorldFactory) -> None:
    world = found({})
    completed_jobs(world, 10, 20, 30, 40, 50)
    submit(world, spec("busy", replicas=4))
    submit(world, spec("next", replicas=4))
    settle(world)
    answer = preview(world, spec(replicas=4))
    assert (eta_in_minutes(answer), answer.place, answer.line) == ((24, 130), 2, 2)


@pytest.mark.parametrize(("history", "kind"), [((10, 20, 30, 40), "training"), ((10, 20, 30, 40, 50), "other")])
def test_no_eta_without_enough_history(found: WorldFactory, history: tuple[float, ...], kind: str) -> None:
    world = found({})
    completed_jobs(world, *history, kind=kind)
    submit(world, spec("busy", replicas=4))
    settle(world)
    answer = preview(world, spec())
    assert (answer.eta, answer.place, answer.line) == (None, 1, 1)


def test_eta_by_deadline_without_history(found: WorldFactory) -> None:
    world = found({})
    submit(world, spec("busy", replicas=4, active_deadline_seconds=600))
    settle(world)
    answer = preview(world, spec())
    assert eta_in_minutes(answer) == (0, 10), "the job can end long before its limit"
    (sentence, _jobs) = descriptions.when(answer, clock.now(), None)
    assert re.fullmatch(
        r"Starts in at most about (10 min 0|9 min 5\d) s, when time limits end the jobs before it\.", sentence
    )


def test_job_running_longer_than_all_before_has_no_expected_end(found: WorldFactory) -> None:
    world = found({})
    job = completed_jobs(world, 1)[0]
    times = RunTimes({key_of(job): [60.0, 120.0, 180.0, 240.0, 300.0]})
    now = clock.now()
    assert times.end(job, now - timedelta(seconds=301), now, RuntimeAssumption.LONG) is None
    assert times.end(job, now - timedelta(seconds=200), now, RuntimeAssumption.SHORT) == now + timedelta(seconds=43)


def test_short_tests_do_not_predict_a_long_job(found: WorldFactory) -> None:
    world = found({})
    completed_jobs(world, *[0.05] * 20)
    submit(world, spec("long", replicas=4, command=["sleep", "1500"]))
    settle(world)
    answer = preview(world, spec())
    assert answer.eta is None
    (sentence,) = descriptions.when(answer, clock.now(), None)
    assert sentence.startswith("Start time unknown")


@pytest.mark.parametrize("is_of_the_batch", [True, False])
def test_jobs_of_a_batch_predict_each_other_whatever_their_parameters(
    found: WorldFactory, is_of_the_batch: bool
) -> None:
    world = found({})
    rows = completed_jobs(world, 10, 20, 30, 40, 50)
    for rate, row in enumerate(rows):
        row.spec["tasks"][0]["command"] = ["train", f"--rate={rate}"]
    Job.objects.bulk_update(rows, ["spec"])
    submit(world, spec("busy", replicas=4, command=["train", "--rate=9"]))
    settle(world)
    batch = Batch.objects.create(
        name="rates", tenant=world.tenant, owner=world.alice, kind=Batch.Kind.SWEEP, submitted_at=clock.now()
    )
    members = [*rows, *Job.objects.filter(name="busy")] if is_of_the_batch else rows
    BatchJob.objects.bulk_create(BatchJob(batch=batch, number=n, job=row) for n, row in enumerate(members))
    snapshot_cache.forget_all()
    answer = preview(world, spec())
    assert eta_in_minutes(answer) == ((12, 67) if is_of_the_batch else None)


def test_equal_run_times_give_a_range_with_its_basis(found: WorldFactory) -> None:
    world = found({})
    completed_jobs(world, *[10] * 6)
    submit(world, spec("busy", replicas=4))
    settle(world)
    answer = preview(world, spec())
    assert answer.eta.earliest < answer.eta.latest
    span, basis, _jobs = descriptions.when(answer, clock.now(), None)
    assert re.fullmatch(r"Starts in about 8 min \d+ s to (1\d|20) min \d+ s\.", span)
    assert (
        basis
        == "The estimate uses the run times of at least 6 earlier jobs with the same commands or of the same batch."
    )


def test_job_without_known_end_may_end_now(found: WorldFactory) -> None:
    """Two jobs run: either could make room, and only one has a history."""
    world = found({})
    completed_jobs(world, 10, 20, 30, 40, 50)
    submit(world, spec("known", replicas=2))
    submit(world, spec("unknown", replicas=2, command=["sleep", "1500"]))
    settle(world)
    assert eta_in_minutes(preview(world, spec())) == (0, 67)


def test_waiting_job_gets_one_forecast(found: WorldFactory) -> None:
    world = found({})
    completed_jobs(world, 10, 20, 30, 40, 50)
    submit(world, spec("busy", replicas=4))
    job = submit(world, spec("waits"))
    settle(world)
    assert [forecasting.record(world.cluster) for _ in range(2)] == [1, 0]
    forecast = Forecast.objects.get()
    assert forecast.job_id == job.pk
    assert forecast.earliest_at < forecast.latest_at


@pytest.mark.parametrize(
    ("started", "revision", "expected"),
    [
        ([5, 5, 5, 5], 1, None),  # too few
        ([5, 5, 5, 5, 50], 1, (4, 5)),
        ([5, 5, 5, None, 50], 1, None),  # one is still waiting, within its forecast
        ([5, 5, 5, 5, 5], 2, None),  # they were changed since the forecast
    ],
)
def test_forecast_accuracy(
    found: WorldFactory, started: list[int | None], revision: int, expected: tuple[int, int] | None
) -> None:
    world = found({})
    now = clock.now()
    for job, minute in zip(completed_jobs(world, *[1] * len(started)), started, strict=True):
        job.started_at = None if minute is None else now + timedelta(minutes=minute)
        job.finished_at, job.revision = None, revision
        job.save()
        Forecast.objects.create(job=job, made_at=now, earliest_at=now, latest_at=now + timedelta(minutes=9))
    accuracy = forecasts.accuracy(world.queue.pk)
    assert (accuracy and (accuracy.held, accuracy.cases)) == expected
