"""Tasks that wait for other tasks of their job."""

import pytest
from tests.domain.lifecycle.worlds import World, spec

from hekla.domain.lifecycle import PodRef, stage_of
from hekla.domain.phases import PodPhase
from hekla.domain.policies import LifecycleAction

PREPARE = {"name": "prepare", "replicas": 2}
TRAIN = {"name": "train", "replicas": 3, "depends_on": {"tasks": ["prepare"]}}
FIRST = [PodRef("prepare", 0, 1), PodRef("prepare", 1, 1)]
SECOND = [PodRef("train", index, 1) for index in range(3)]


def stage(world):
    return stage_of(world.job, list(world.pods.values()))


def test_pods_are_made_when_the_tasks_before_them_are_at_work():
    world = World(spec(PREPARE, TRAIN))
    assert list(world.admit().create) == FIRST
    world.report(PodPhase.RUNNING, FIRST[:1])
    assert world.last.create == ()
    world.report(PodPhase.RUNNING, FIRST[1:])
    assert list(world.last.create) == SECOND


def test_a_task_that_is_done_counts_like_one_at_work():
    world = World(spec(PREPARE, TRAIN))
    world.admit()
    world.report(PodPhase.RUNNING, FIRST[:1])
    world.report(PodPhase.SUCCEEDED, FIRST)
    assert list(world.last.create) == SECOND
    world.report(PodPhase.SUCCEEDED, SECOND)
    assert world.phase == "completed"


def test_the_minimum_of_a_task_is_enough_for_those_that_wait():
    world = World(spec({**PREPARE, "min_available": 1}, TRAIN))
    world.admit()
    world.report(PodPhase.RUNNING, FIRST[:1])
    assert list(world.last.create) == SECOND


@pytest.mark.parametrize(("iteration", "made"), [("all", []), ("any", [PodRef("c", 0, 1)])])
def test_one_of_several_tasks_is_enough_where_any_is_asked_for(iteration, made):
    world = World(
        spec({"name": "a"}, {"name": "b"}, {"name": "c", "depends_on": {"tasks": ["a", "b"], "iteration": iteration}})
    )
    world.admit()
    world.report(PodPhase.RUNNING, [PodRef("a", 0, 1)])
    assert list(world.last.create) == made


@pytest.mark.parametrize(
    ("tasks", "fields", "first", "whole"),
    [
        ([PREPARE, TRAIN], {}, (2, {"prepare": 2, "train": 0}), (5, {"prepare": 2, "train": 3})),
        (
            [{**PREPARE, "min_available": 1}, TRAIN],
            {},
            (1, {"prepare": 1, "train": 0}),
            (4, {"prepare": 1, "train": 3}),
        ),
        ([PREPARE, TRAIN], {"min_available": 1}, (1, {"prepare": 2, "train": 0}), (1, {"prepare": 2, "train": 3})),
        ([PREPARE, TRAIN], {"min_available": 4}, (2, {"prepare": 2, "train": 0}), (4, {"prepare": 2, "train": 3})),
    ],
)
def test_a_gang_is_as_large_as_what_is_not_held_back(tasks, fields, first, whole):
    world = World(spec(*tasks, **fields))
    assert (stage(world).minimum, stage(world).minimums) == first
    world.admit()
    world.report(PodPhase.RUNNING, FIRST)
    assert (stage(world).minimum, stage(world).minimums) == whole


def test_a_job_runs_when_the_tasks_that_waited_run_too():
    world = World(spec(PREPARE, TRAIN))
    world.admit()
    world.report(PodPhase.RUNNING, FIRST[:1])
    assert (world.phase, stage(world).waits) == ("pending", {"train": ("prepare",)})
    world.report(PodPhase.RUNNING, FIRST[1:])
    assert (world.phase, stage(world).waits) == ("pending", {})
    world.report(PodPhase.RUNNING, SECOND)
    assert (world.phase, stage(world).waits) == ("running", {})


def test_what_waits_for_a_task_that_failed_never_begins_and_the_job_says_so():
    world = World(spec(PREPARE, TRAIN))
    world.admit()
    world.report(PodPhase.RUNNING, FIRST[:1])
    world.report(PodPhase.FAILED, FIRST, exit_code=2)
    assert (world.phase, world.last.reason) == ("failed", "PodsFailed")
    assert world.last.message == (
        "0 of 5 pods succeeded. prepare-0 failed with exit code 2, and 1 other pod failed too. "
        "train never started: it waited for prepare."
    )


def test_a_replica_that_is_gone_waits_for_its_task_to_be_there_and_holds_nobody_up():
    """Were it still counted, the gang would be short of it, and what it waits for would never be placed again."""
    world = World(spec({"name": "ps"}, {"name": "worker", "replicas": 2, "depends_on": {"tasks": ["ps"]}}))
    world.admit()
    world.report(PodPhase.RUNNING, [PodRef("ps", 0, 1)])
    world.report(PodPhase.RUNNING, world.all_latest())
    for ref in (PodRef("ps", 0, 1), PodRef("worker", 1, 1)):
        world.evict(ref)
        world.report(PodPhase.FAILED, [ref], exit_code=143)
    assert world.latest("ps", 0) == PodRef("ps", 0, 2)
    assert world.latest("worker", 1) == PodRef("worker", 1, 1)
    assert (stage(world).minimum, stage(world).minimums) == (2, {"ps": 1, "worker": 1})
    world.report(PodPhase.RUNNING, [PodRef("ps", 0, 2)])
    assert world.latest("worker", 1) == PodRef("worker", 1, 2)


def test_a_restart_begins_with_the_first_tasks_again():
    world = World(spec(PREPARE, TRAIN))
    world.admit()
    world.report(PodPhase.RUNNING, FIRST)
    world.report(PodPhase.RUNNING, SECOND)
    world.do(LifecycleAction.RESTART_JOB)
    world.stopped_pods_end()
    assert [str(ref.slot) for ref in world.admit().create] == ["prepare-0", "prepare-1"]


def test_a_resumed_job_goes_on_where_it_was():
    world = World(spec(PREPARE, TRAIN))
    world.admit()
    world.report(PodPhase.RUNNING, FIRST)
    world.report(PodPhase.SUCCEEDED, FIRST)
    world.do(LifecycleAction.ABORT_JOB)
    world.stopped_pods_end()
    world.do(LifecycleAction.RESUME_JOB)
    assert [str(ref.slot) for ref in world.admit().create] == ["train-0", "train-1", "train-2"]
