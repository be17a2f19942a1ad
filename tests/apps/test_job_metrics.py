"""The metrics of all jobs: found by events, read whole in bounded parts, and forgotten by nobody who restarts."""

import random
from datetime import timedelta
from importlib import import_module
from itertools import chain
from typing import Any

import pytest
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.job_metrics import selectors, services
from hekla.apps.job_metrics.models import MetricCursor, MetricLog
from hekla.apps.job_metrics.services import LogPart
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.telling import tell
from hekla.backends.base import PodKey
from hekla.backends.log_chunk import LogChunk
from hekla.controller import job_metrics as reader
from hekla.domain import events
from hekla.domain.job_kinds import EXTERNAL
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import PodPhase
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]


class LogServer:
    """A backend that has one log for all pods, and counts what is read of it."""

    def __init__(self, text: bytes) -> None:
        self.text, self.is_ended = text, False
        self.requests: list[tuple[int, int]] = []
        self.times: list[tuple[int, int]] = []

    def logs(self, _key: PodKey, *, offset: int, limit: int) -> LogChunk:
        data = self.text[offset : offset + limit]
        end = offset + len(data)
        self.requests.append((offset, len(data)))
        return LogChunk(data, offset, end, complete=self.is_ended and end == len(self.text), times=self.times)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> LogServer:
    found = LogServer(b"")
    monkeypatch.setattr(reader, "backend_of", lambda _cluster: found)
    return found


@pytest.fixture
def job(people: People) -> Job:
    spec = JobSpec.parse({"name": "train", "tasks": [{"name": "main", "command": ["train"]}]})
    return jobs.submit(spec=spec, tenant=people.lab, user=people.alice, now=clock.now())


def change_phase(job: Job, new: PodPhase, **facts: Any) -> Pod:
    """The controller observes a pod of the job in this phase."""
    now = clock.now()
    key = {"task": "main", "index": facts.pop("index", 0), "attempt": facts.pop("attempt", 1)}
    with unit_of_work():
        pod, _is_new = Pod.objects.update_or_create(
            job=job,
            **key,
            defaults={"phase": new, "started_at": now, **facts},
            create_defaults={
                "phase": new, "started_at": now, "version": 1, "slot": 0, "address": "", "created_at": now, **facts,
            },
        )  # fmt: skip
        tell(job, events.PodPhaseChanged(old=PodPhase.BOUND, new=new, **key), actor=CONTROLLER, now=now)
    return pod


def figures(job: Job) -> dict[str, Any]:
    return selectors.figures_of([job.pk])[job.pk]


def lines(values: list[float]) -> bytes:
    return "".join(f"a line of noise\n::metric loss={value}\n" for value in values).encode()


def test_a_single_job_is_read_from_its_start_to_its_end(job: Job, server: LogServer) -> None:
    change_phase(job, PodPhase.RUNNING)
    server.text = b"::metric step=1 loss=3\n::metric step=2 lo"
    assert reader.read_metrics(now=clock.now()) == 1
    assert figures(job)["loss"]["last"] == 3
    server.text += b"ss=1\nbye"
    assert reader.read_metrics(now=clock.now()) == 0, "not due yet"
    server.is_ended = True
    change_phase(job, PodPhase.SUCCEEDED)
    assert reader.read_metrics(now=clock.now()) == 1
    assert figures(job)["loss"] == {
        "last": 1, "min": 1, "max": 3, "count": 2, "last_step": 2, "min_step": 2, "max_step": 1,
    }  # fmt: skip
    assert selectors.next_due() is None
    count = len(server.requests)
    reader.read_metrics(now=clock.now() + timedelta(days=1))
    assert len(server.requests) == count, "a log that is read costs nothing"


def test_a_log_that_cannot_be_read_does_not_hold_up_others(
    job: Job, server: LogServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = change_phase(job, PodPhase.RUNNING)
    change_phase(job, PodPhase.RUNNING, index=1)
    server.text, read = b"::metric loss=3\n", server.logs

    def logs(key: PodKey, *, offset: int, limit: int) -> LogChunk:
        if key.index == broken.index:
            raise ValueError(key)
        return read(key, offset=offset, limit=limit)

    monkeypatch.setattr(server, "logs", logs)
    assert reader.read_metrics(now=clock.now()) == 1
    assert figures(job)["loss"]["last"] == 3
    monkeypatch.setattr(server, "logs", read)
    assert reader.read_metrics(now=clock.now() + timedelta(minutes=2)) == 1


def test_only_events_since_the_last_call_are_followed(job: Job, django_assert_max_num_queries: Any) -> None:
    change_phase(job, PodPhase.RUNNING)
    for index in (1, selectors.MAX_REPLICAS):
        change_phase(job, PodPhase.RUNNING, index=index)
    assert not services.follow(now=clock.now())
    assert set(MetricLog.objects.values_list("pod__index", flat=True)) == {0, 1}
    with django_assert_max_num_queries(5):  # with the savepoint
        services.follow(now=clock.now())


def test_many_events_are_followed_in_parts(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "_MOST_EVENTS", 2)
    for attempt in (1, 2, 3):
        change_phase(job, PodPhase.RUNNING, attempt=attempt)
    assert services.follow(now=clock.now())
    number = MetricCursor.objects.get().number
    services.follow(now=clock.now())
    assert MetricCursor.objects.get().number > number
    assert MetricLog.objects.count() == 3


def test_a_job_that_restarts_for_ever_keeps_its_last_logs(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MOST_LOGS", 3)
    for attempt in (1, 2):
        for index in range(2):
            change_phase(job, PodPhase.RUNNING, index=index, attempt=attempt)
    services.follow(now=clock.now())
    MetricLog.objects.filter(is_complete=False).update(summary={"loss": {}})
    change_phase(job, PodPhase.RUNNING, attempt=3)
    services.follow(now=clock.now())
    found = MetricLog.objects.filter(is_complete=False).values_list("pod__attempt", "pod__index")
    assert set(found) == {(3, 0), (2, 0), (2, 1)}
    assert not MetricLog.objects.filter(is_complete=True).exclude(summary={}).exists()


def test_jobs_of_other_controllers_are_left_out(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(kind=EXTERNAL)
    change_phase(job, PodPhase.RUNNING)
    services.follow(now=clock.now())
    assert not MetricLog.objects.exists()


@pytest.mark.parametrize("seed", range(5))
def test_parts_with_any_borders_give_the_same_as_the_whole(job: Job, seed: int) -> None:
    """Borders within lines and names, each with a restart: only the row survives."""
    chance = random.Random(seed)
    text, now = lines([chance.random() for _ in range(700)]), clock.now()
    pod = change_phase(job, PodPhase.RUNNING)
    other = change_phase(job, PodPhase.RUNNING, index=1)
    services.follow(now=now)
    whole = MetricLog.objects.select_related("pod__job").get(pod=other)
    services.store(whole, LogPart(text, len(text), is_last=True, times=[(0, 0)]), now=now)
    offset = 0
    while not MetricLog.objects.get(pod=pod).is_complete:
        log = MetricLog.objects.select_related("pod__job").get(pod=pod)
        offset = log.offset
        end = min(len(text), offset + chance.randrange(17, 3000))
        services.store(log, LogPart(text[offset:end], end, is_last=end == len(text)), now=now)
    parts, whole = MetricLog.objects.get(pod=pod), MetricLog.objects.get(pod=other)
    assert parts.summary == whole.summary
    assert [parts.points["loss"][one] for one in ("steps", "values", "every")] == [
        whole.points["loss"][one] for one in ("steps", "values", "every")
    ]


def test_a_log_of_20_mib_is_read_whole_in_bounded_parts(job: Job, server: LogServer) -> None:
    values = [float(number % 97) for number in range(2000)]
    values[1234] = 1000.0
    gap = b"x" * 10_400 + b"\n"
    server.text = b"".join(gap + f"::metric loss={value}\n".encode() for value in values)
    server.is_ended = True
    assert len(server.text) > 20 * services.READ_BYTES * 0.98
    change_phase(job, PodPhase.SUCCEEDED)
    while selectors.next_due() is not None or not MetricLog.objects.exists():
        reader.read_metrics(now=clock.now())
    found = figures(job)["loss"]
    assert (found["count"], found["last"], found["max"], found["max_step"]) == (2000, values[-1], 1000.0, 1234)
    assert max(size for _offset, size in server.requests) <= services.READ_BYTES
    assert len(server.requests) <= 21
    assert 1000.0 in MetricLog.objects.get().points["loss"]["values"]


def test_a_log_without_metrics_is_read_more_and_more_rarely(job: Job, server: LogServer) -> None:
    change_phase(job, PodPhase.RUNNING)
    began, now, hours = clock.now(), clock.now(), 24
    while now < began + timedelta(hours=hours):
        server.text += b"noise\n"
        reader.read_metrics(now=now)
        due = selectors.next_due()
        assert due
        now = due
    assert len(server.requests) < hours * 6 + 30
    server.text += b"::metric loss=1\n"
    reader.read_metrics(now=now)
    due = selectors.next_due()
    assert due
    assert due - now == services.READ_EVERY


def test_points_have_the_times_of_the_cluster_or_estimates(job: Job, server: LogServer) -> None:
    start = clock.now() - timedelta(seconds=100)
    pod = change_phase(job, PodPhase.RUNNING, started_at=start)
    server.text = b"::metric loss=1\n::metric loss=2\n"
    server.times = [(0, 0), (16, round(start.timestamp() * 1000) + 30_500)]
    reader.read_metrics(now=start + timedelta(seconds=80))
    stored = MetricLog.objects.get(pod=pod).points["loss"]["seconds"]
    assert (stored[-2], stored[-1]) == (0.0, 30.5)
    server.times, server.text = [], server.text + b"::metric loss=3\n::metric loss=4\n"
    reader.read_metrics(now=start + timedelta(seconds=100))
    assert MetricLog.objects.get(pod=pod).points["loss"]["seconds"][-1] == 90.0


def test_upgrade_copies_every_log() -> None:
    upgrade = import_module("hekla.apps.batches.migrations.0003_metrics_of_all_jobs")
    assert [*chain.from_iterable(upgrade._chunks(iter(range(1201))))] == [*range(1201)]
