"""Dependencies between the tasks of a job."""

import pytest
from tests.domain.lifecycle.harness import JobHarness, spec

from hekla.domain.lifecycle import PodRef, stage_of
from hekla.domain.phases import PodPhase
from hekla.domain.policies import LifecycleAction

PREPARE = {"name": "prepare", "replicas": 2}
TRAIN = {"name": "train", "replicas": 3, "depends_on": {"tasks": ["prepare"]}}
FIRST = [PodRef("prepare", 0, 1), PodRef("prepare", 1, 1)]
SECOND = [PodRef("train", index, 1) for index in range(3)]


def stage(harness):
    return stage_of(harness.job, list(harness.pods.values()))


def test_pods_are_created_when_their_dependencies_run():
    harness = JobHarness(spec(PREPARE, TRAIN))
    assert list(harness.admit().create) == FIRST
    harness.report(PodPhase.RUNNING, FIRST[:1])
    assert harness.last.create == ()
    harness.report(PodPhase.RUNNING, FIRST[1:])
    assert list(harness.last.create) == SECOND


def test_completed_task_satisfies_a_dependency():
    harness = JobHarness(spec(PREPARE, TRAIN))
    harness.admit()
    harness.report(PodPhase.RUNNING, FIRST[:1])
    harness.report(PodPhase.SUCCEEDED, FIRST)
    assert list(harness.last.create) == SECOND
    harness.report(PodPhase.SUCCEEDED, SECOND)
    assert harness.phase == "completed"


def test_minimum_of_a_task_satisfies_a_dependency():
    harness = JobHarness(spec({**PREPARE, "min_available": 1}, TRAIN))
    harness.admit()
    harness.report(PodPhase.RUNNING, FIRST[:1])
    assert list(harness.last.create) == SECOND


@pytest.mark.parametrize(("iteration", "created"), [("all", []), ("any", [PodRef("c", 0, 1)])])
def test_iteration_any_needs_one_of_several_tasks(iteration, created):
    harness = JobHarness(
        spec({"name": "a"}, {"name": "b"}, {"name": "c", "depends_on": {"tasks": ["a", "b"], "iteration": iteration}})
    )
    harness.admit()
    harness.report(PodPhase.RUNNING, [PodRef("a", 0, 1)])
    assert list(harness.last.create) == created


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
def test_gang_minimum_counts_only_released_tasks(tasks, fields, first, whole):
    harness = JobHarness(spec(*tasks, **fields))
    assert (stage(harness).minimum, stage(harness).minimums) == first
    harness.admit()
    harness.report(PodPhase.RUNNING, FIRST)
    assert (stage(harness).minimum, stage(harness).minimums) == whole


def test_job_runs_when_dependent_tasks_run_too():
    harness = JobHarness(spec(PREPARE, TRAIN))
    harness.admit()
    harness.report(PodPhase.RUNNING, FIRST[:1])
    assert (harness.phase, stage(harness).waits) == ("pending", {"train": ("prepare",)})
    harness.report(PodPhase.RUNNING, FIRST[1:])
    assert (harness.phase, stage(harness).waits) == ("pending", {})
    harness.report(PodPhase.RUNNING, SECOND)
    assert (harness.phase, stage(harness).waits) == ("running", {})


def test_failed_dependency_fails_the_job_with_a_message():
    harness = JobHarness(spec(PREPARE, TRAIN))
    harness.admit()
    harness.report(PodPhase.RUNNING, FIRST[:1])
    harness.report(PodPhase.FAILED, FIRST, exit_code=2)
    assert (harness.phase, harness.last.reason) == ("failed", "PodsFailed")
    assert harness.last.message == (
        "0 of 5 pods succeeded. prepare-0 failed with exit code 2, and 1 other pod failed too. "
        "train never started: it waited for prepare."
    )


def test_evicted_replica_waits_for_its_dependency_without_blocking_the_gang():
    """If it still counted, the gang would be below its minimum, and its dependency would never be placed again."""
    harness = JobHarness(spec({"name": "ps"}, {"name": "worker", "replicas": 2, "depends_on": {"tasks": ["ps"]}}))
    harness.admit()
    harness.report(PodPhase.RUNNING, [PodRef("ps", 0, 1)])
    harness.report(PodPhase.RUNNING, harness.all_latest())
    for ref in (PodRef("ps", 0, 1), PodRef("worker", 1, 1)):
        harness.evict(ref)
        harness.report(PodPhase.FAILED, [ref], exit_code=143)
    assert harness.latest("ps", 0) == PodRef("ps", 0, 2)
    assert harness.latest("worker", 1) == PodRef("worker", 1, 1)
    assert (stage(harness).minimum, stage(harness).minimums) == (2, {"ps": 1, "worker": 1})
    harness.report(PodPhase.RUNNING, [PodRef("ps", 0, 2)])
    assert harness.latest("worker", 1) == PodRef("worker", 1, 2)


def test_restart_begins_with_the_first_tasks():
    harness = JobHarness(spec(PREPARE, TRAIN))
    harness.admit()
    harness.report(PodPhase.RUNNING, FIRST)
    harness.report(PodPhase.RUNNING, SECOND)
    harness.do(LifecycleAction.RESTART_JOB)
    harness.stopped_pods_end()
    assert [str(ref.slot) for ref in harness.admit().create] == ["prepare-0", "prepare-1"]


def test_resumed_job_continues_with_its_stage():
    harness = JobHarness(spec(PREPARE, TRAIN))
    harness.admit()
    harness.report(PodPhase.RUNNING, FIRST)
    harness.report(PodPhase.SUCCEEDED, FIRST)
    harness.do(LifecycleAction.ABORT_JOB)
    harness.stopped_pods_end()
    harness.do(LifecycleAction.RESUME_JOB)
    assert [str(ref.slot) for ref in harness.admit().create] == ["train-0", "train-1", "train-2"]
