"""A replica that fails again and again is restarted less and less often."""

from datetime import timedelta

import pytest
from tests.domain.lifecycle.harness import JobHarness, spec

from hekla.domain.lifecycle import ActionTarget
from hekla.domain.phases import PodPhase
from hekla.domain.policies import LifecycleAction

SECOND = timedelta(seconds=1)
TARGET = ActionTarget("task0", 0)


def job(action: str = "RestartPod", event: str = "PodFailed", **fields) -> JobHarness:
    """Two pods that run, of a job with this policy and a back-off of ten seconds."""
    policies = [{"events": [event], "action": action}]
    job_spec = spec({"replicas": 2}, policies=policies, **{"max_retry": 20, **fields})
    return JobHarness(job_spec, restart_backoff=10 * SECOND).start()


def fail(harness: JobHarness, index: int = 0) -> int:
    """A pod fails. Returns the seconds until the job's restart goes on; all its pods run again afterwards."""
    harness.report(PodPhase.FAILED, [harness.latest("task0", index)], exit_code=1)
    failed_at = harness.now
    if harness.job.restart_at:
        harness.now = harness.job.restart_at - SECOND
        harness.stopped_pods_end()
        assert (harness.sync().create, harness.phase) == ((), "restarting")
        harness.now = harness.job.restart_at
    harness.stopped_pods_end()
    harness.sync()
    waited = (harness.now - failed_at) // SECOND
    harness.admit()
    assert harness.job.restart_at is None
    harness.report(PodPhase.RUNNING, [ref for ref in harness.all_latest() if harness.pods[ref].is_alive])
    assert harness.phase == "running"
    return waited


@pytest.mark.parametrize("action", ["RestartPod", "RestartTask", "RestartJob"])
def test_delays_double_up_to_five_minutes(action) -> None:
    harness = job(action)
    assert [fail(harness) for _ in range(9)] == [0, 10, 20, 40, 80, 160, 300, 300, 300]


def test_message_says_how_long_and_why() -> None:
    harness = job()
    fail(harness)
    harness.report(PodPhase.FAILED, [harness.latest("task0", 0)], exit_code=1)
    assert harness.last.message == (
        "task0-0 failed with exit code 1. Restart 2 of 20. It waits 10 s, because the pod failed 2 times in a row."
    )


def test_fifteen_minutes_without_a_failure_begin_anew() -> None:
    harness = job()
    assert [fail(harness), fail(harness)] == [0, 10]
    harness.now += timedelta(minutes=16)
    assert [fail(harness), fail(harness)] == [0, 10]


def test_failures_of_another_replica_are_not_counted() -> None:
    harness = job()
    assert [fail(harness, 0), fail(harness, 1), fail(harness, 0), fail(harness, 1)] == [0, 0, 10, 10]


def test_restart_by_a_person_never_waits() -> None:
    harness = job()
    fail(harness)
    harness.report(PodPhase.FAILED, [harness.latest("task0", 0)], exit_code=1)
    assert harness.phase == "restarting"
    harness.do(LifecycleAction.RESTART_POD, TARGET, by_person=True)
    assert (harness.phase, harness.job.restart_at) == ("pending", None)


def test_restarts_by_a_person_are_no_failures() -> None:
    harness = job()
    for _ in range(3):
        harness.do(LifecycleAction.RESTART_POD, TARGET, by_person=True)
        harness.stopped_pods_end()
        harness.report(PodPhase.RUNNING, [harness.latest("task0", 0)])
    assert fail(harness) == 0


@pytest.mark.parametrize("phase", [PodPhase.FAILED, PodPhase.LOST])
def test_evictions_and_losses_do_not_wait(phase) -> None:
    harness = job("RestartJob", event="*")
    for _ in range(3):
        if phase is PodPhase.FAILED:
            harness.evict(harness.latest("task0", 0))
        harness.report(phase, [harness.latest("task0", 0)])
        assert harness.job.restart_at is None
        harness.stopped_pods_end()
        harness.admit()
        harness.report(PodPhase.RUNNING, harness.all_latest())


@pytest.mark.parametrize(
    ("action", "phase"),
    [
        (LifecycleAction.ABORT_JOB, "aborting"),
        (LifecycleAction.COMPLETE_JOB, "completing"),
        (LifecycleAction.TERMINATE_JOB, "terminating"),
    ],
)
def test_job_that_waits_can_be_ended(action, phase) -> None:
    harness = job()
    fail(harness)
    harness.report(PodPhase.FAILED, [harness.latest("task0", 0)], exit_code=1)
    harness.do(action)
    assert (harness.phase, harness.job.restart_at) == (phase, None)


def test_retries_end_as_without_a_delay() -> None:
    harness = job(max_retry=2)
    assert [fail(harness), fail(harness)] == [0, 10]
    harness.report(PodPhase.FAILED, [harness.latest("task0", 0)], exit_code=1)
    assert (harness.phase, harness.last.reason, harness.job.restart_at) == ("failed", "RetriesExhausted", None)
