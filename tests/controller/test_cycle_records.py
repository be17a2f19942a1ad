"""The controller records each cycle that decided something, and the engine decides the same on the record."""

from datetime import timedelta

import pytest
from django.db import ProgrammingError
from tests.controller.conftest import World
from tests.controller.test_sharing import ELASTIC, Gpus, gpus, submit  # noqa: F401

from hekla.apps.cycle_records import services
from hekla.apps.cycle_records.models import CycleRecord
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Pod
from hekla.controller import cycle_recorder
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState
from hekla.lib import clock
from hekla.scheduling import column_codec, cycle_records
from hekla.scheduling.cycle_replay import replay


def recorded() -> list[CycleRecord]:
    return list(CycleRecord.objects.order_by("pk"))


def check_replays(rows: list[CycleRecord]) -> None:
    """Every record that has a document replays to what it says and to its counts."""
    for row in rows:
        again = replay(cycle_records.load(row))
        assert again.is_equal, (row, again.differences)
        assert (len(again.outcome.binds), len(again.outcome.evictions)) == (row.binds, row.evictions)


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_local_jobs_are_placed_again_as_they_were(world: World) -> None:
    for name, replicas in (("a", 2), ("wide", 9)):
        task = {"name": "w", "replicas": replicas, "command": ["true"], "resources": {"cpu": "1"}}
        spec = JobSpec.parse({"name": name, "tasks": [task]})
        jobs.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Pod.objects.filter(job__name="a", phase="succeeded").count() == 2)
    rows = recorded()
    binds = {(pod, node) for row in rows for _job, pod, node, _notes in cycle_records.load(row).outcome.binds}
    assert binds == {(str(pod.pk), pod.node) for pod in Pod.objects.filter(job__name="a")}
    assert any(row.refusals for row in rows), "the wide job has no room"
    assert sum(row.admissions for row in rows) == 1
    check_replays(rows)


def test_evictions_and_references_to_a_whole_record(gpus: Gpus) -> None:  # noqa: F811
    world = gpus(ELASTIC, 4)
    submit(world, "elastic", 4, 1, priority=0)
    world.reconcile_until(lambda: Pod.objects.filter(phase="running").count() == 4)
    submit(world, "urgent", 2, priority=10)
    world.reconcile_until(lambda: Pod.objects.filter(job__name="urgent", phase="running").count() == 2)
    rows = recorded()
    evicted = {pod for row in rows for _job, pod, *_more in cycle_records.load(row).outcome.evictions}
    assert evicted == {str(pod.pk) for pod in Pod.objects.filter(job__name="elastic", evicted=True)}
    assert {row.trigger for row in rows} >= {"events", "follow_up"}
    assert any(row.pipelined for row in rows)
    check_replays(rows)


def test_without_cpu_left_a_cycle_is_listed_without_a_document(gpus: Gpus, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setattr(cycle_recorder.CpuBudget, "has_some", lambda _budget: False)
    world = gpus(ELASTIC, 4)
    submit(world, "a", 1)
    world.reconcile_until(lambda: Pod.objects.filter(phase="running").count() == 1)
    rows = recorded()
    assert {row.omission for row in rows} == {"cpu"}
    assert sum(row.binds for row in rows) == 1


def test_errors_of_recording_do_not_stop_scheduling(gpus: Gpus, monkeypatch, caplog) -> None:  # noqa: F811
    def fail(*_arguments: object) -> None:
        raise ProgrammingError("no such table")

    with monkeypatch.context() as failing:
        failing.setattr(services, "store", fail)
        world = gpus(ELASTIC, 4)
        submit(world, "a", 1)
        world.reconcile_until(lambda: Pod.objects.filter(phase="running").count() == 1)
    assert "its cycles cannot be recorded" in caplog.text
    assert not controllers.get(world.cluster.pk).fault
    with monkeypatch.context() as failing:
        failing.delattr(cycle_recorder, "pack")
        submit(world, "b", 1)
        world.reconcile_until(lambda: Pod.objects.filter(phase="running").count() == 2)
    assert {row.omission for row in recorded()} == {"error"}
    monkeypatch.setattr(column_codec, "MAX_VALUE_BYTES", 10)
    submit(world, "c", 1)
    world.reconcile_until(lambda: Pod.objects.filter(phase="running").count() == 3)
    assert recorded()[-1].omission == "size"


def test_cycles_that_are_never_written_are_bounded() -> None:
    state = ClusterState((), (), ())
    recorder = cycle_recorder.CycleRecorder()
    for at in range(100):
        decided = Decisions(pipelined={str(at): "n"})
        run = cycle_recorder.EngineRun(state, "", clock.now(), decided)
        recorder.note(run, (), trigger=cycle_recorder.TIME)
    assert len(recorder._noted) == cycle_recorder.MAX_NOTED


def test_oldest_records_are_deleted_with_what_refers_to_them(gpus: Gpus, monkeypatch) -> None:  # noqa: F811
    world = gpus(ELASTIC, 4)
    controllers.reconcile(world.cluster)
    CycleRecord.objects.all().delete()
    epoch = controllers.get(world.cluster.pk).epoch
    assert epoch is not None

    def store(days: float, size: int, base: CycleRecord | None = None) -> CycleRecord:
        counts = dict.fromkeys(
            ("engine_ms", "jobs", "pods", "admissions", "binds", "evictions", "pipelined", "refusals"), 0
        )
        at = clock.now() - timedelta(days=days)
        row = CycleRecord(
            cluster=world.cluster, at=at, trigger="time", size=size, data=b"x", base=base and base.pk, **counts
        )
        services.store(world.cluster.pk, epoch, row)
        return row

    monkeypatch.setattr(services, "MAX_BYTES", 100)
    store(9, 10)
    first = store(6, 10)
    second = store(3, 60, first)
    assert services.delete_old(world.cluster.pk, epoch, now=clock.now()) == 1
    third = store(1, 50)
    assert services.delete_old(world.cluster.pk, epoch, now=clock.now()) == 2
    assert [row.pk for row in recorded()] == [third.pk], second
    assert services.delete_old(world.cluster.pk, epoch, now=clock.now() + services.MAX_AGE * 2) == 1
