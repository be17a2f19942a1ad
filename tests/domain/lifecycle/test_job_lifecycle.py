"""The lifecycle of a job, in short scenarios."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.domain.lifecycle.harness import JobHarness, spec

from hekla.domain.lifecycle import (
    TRANSITIONS,
    ActionTarget,
    ImpossibleTransition,
    JobFacts,
    PodFacts,
    PodRef,
    Stimulus,
    advance,
    expire,
    overdue,
    resolve,
    stimuli_of,
)
from hekla.domain.phases import FINAL_JOB_PHASES, JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction, LifecycleEvent

WORKERS = {"name": "worker", "replicas": 3}
RESTART = [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_pods_are_created_after_admission():
    harness = JobHarness(spec(WORKERS))
    assert harness.sync().create == ()
    assert harness.admit().create == (PodRef("worker", 0, 1), PodRef("worker", 1, 1), PodRef("worker", 2, 1))
    assert harness.sync().create == ()


def test_job_runs_with_its_gang_and_completes_when_all_pods_succeed():
    harness = JobHarness(spec(WORKERS))
    harness.admit()
    harness.report(PodPhase.RUNNING, [PodRef("worker", 0, 1), PodRef("worker", 1, 1)])
    assert harness.phase == "pending"
    harness.report(PodPhase.RUNNING, [PodRef("worker", 2, 1)])
    assert harness.phase == "running"
    harness.report(PodPhase.SUCCEEDED, harness.all_latest())
    assert harness.phase == "completed"
    assert harness.last.message == "3 of 3 pods succeeded."
    assert str(harness.job.gang_phase) == "completed"


def test_late_observations_pass_through_every_phase():
    harness = JobHarness(spec(WORKERS))
    harness.admit()
    pods = [PodFacts(ref.task, ref.index, ref.attempt, 1, PodPhase.SUCCEEDED) for ref in harness.pods]
    outcome = advance(harness.job, pods, LifecycleAction.SYNC_JOB, now=NOON)
    assert [step.phase for step in outcome.steps] == ["running", "completed"]


@pytest.mark.parametrize(
    ("fields", "tasks", "succeeded", "want", "reason"),
    [
        ({}, [WORKERS], 3, "completed", "PodsSucceeded"),
        ({}, [WORKERS], 2, "failed", "PodsFailed"),
        ({"min_available": 2}, [WORKERS], 2, "completed", "PodsSucceeded"),
        ({"min_available": 2}, [WORKERS], 1, "failed", "PodsFailed"),
        ({"min_success": 2}, [WORKERS], 1, "failed", "TooFewSuccesses"),
        ({"min_available": 2}, [{**WORKERS, "min_available": 2}], 1, "failed", "TaskFailed"),
        ({"min_available": 1}, [{**WORKERS, "min_available": 2}], 1, "completed", "PodsSucceeded"),
    ],
)
def test_result_of_a_job_whose_pods_have_ended(fields, tasks, succeeded, want, reason):
    harness = JobHarness(spec(*tasks, **fields)).start()
    refs = harness.all_latest()
    harness.report(PodPhase.FAILED, refs[succeeded:], exit_code=1)
    harness.report(PodPhase.SUCCEEDED, refs[:succeeded])
    assert (harness.phase, harness.last.reason) == (want, reason)


def test_min_success_completes_the_job_and_stops_the_rest():
    harness = JobHarness(spec(WORKERS, min_success=1)).start()
    harness.report(PodPhase.SUCCEEDED, [PodRef("worker", 1, 1)])
    assert harness.phase == "completed"
    assert harness.last.stop == (PodRef("worker", 0, 1), PodRef("worker", 2, 1))


def test_failed_pod_without_a_policy_leaves_the_others_running():
    harness = JobHarness(spec(WORKERS)).start()
    harness.report(PodPhase.FAILED, [PodRef("worker", 1, 1)], exit_code=9)
    assert harness.phase == "running"
    assert (harness.last.stop, harness.last.create) == ((), ())
    assert "worker-1 failed with exit code 9" in harness.last.message


def test_restart_stops_all_pods_and_waits_for_admission():
    harness = JobHarness(spec(WORKERS, policies=RESTART)).start()
    harness.report(PodPhase.FAILED, [PodRef("worker", 1, 1)], exit_code=9)
    assert harness.phase == "restarting"
    assert harness.last.message == "worker-1 failed with exit code 9. Restart 1 of 3."
    assert harness.last.stop == (PodRef("worker", 0, 1), PodRef("worker", 2, 1))
    harness.stopped_pods_end()
    assert (harness.phase, str(harness.job.gang_phase), harness.last.create) == ("pending", "pending", ())
    assert harness.admit().create == (PodRef("worker", 0, 2), PodRef("worker", 1, 2), PodRef("worker", 2, 2))


def test_two_simultaneous_failures_are_one_restart():
    harness = JobHarness(spec(WORKERS, policies=RESTART)).start()
    harness.report(PodPhase.FAILED, [PodRef("worker", 1, 1), PodRef("worker", 2, 1)], exit_code=9)
    assert (harness.job.retry_count, harness.job.version) == (1, 2)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_max_retry_limits_the_restarts(limit):
    harness = JobHarness(spec(WORKERS, policies=RESTART, max_retry=limit))
    for _ in range(limit + 1):
        assert harness.phase == "pending"
        harness.start()
        harness.report(PodPhase.FAILED, [harness.latest("worker", 0)], exit_code=1)
        harness.stopped_pods_end()
    assert (harness.phase, harness.last.reason, harness.job.retry_count) == ("failed", "", limit)
    assert max(ref.attempt for ref in harness.pods) == limit + 1


def test_job_without_retries_left_names_the_failure():
    harness = JobHarness(spec(WORKERS, policies=RESTART, max_retry=1))
    for _ in range(2):
        harness.start()
        harness.report(PodPhase.FAILED, [harness.latest("worker", 0)], exit_code=1)
        outcome = harness.last
        harness.stopped_pods_end()
    assert outcome.reason == "RetriesExhausted"
    assert outcome.message == ("worker-0 failed with exit code 1. The job was restarted once, the maximum.")


def test_task_policies_take_precedence():
    tasks = [{"name": "ps", "policies": [{"events": ["*"], "action": "AbortJob"}]}, {"name": "worker"}]
    job = JobFacts(spec(*tasks, policies=[{"exit_code": 3, "action": "CompleteJob"}, *RESTART]), JobPhase.RUNNING)

    def resolved(**fields):
        return resolve(job, Stimulus(event=LifecycleEvent.POD_FAILED, version=1, **fields))

    assert resolved(task="ps", index=0, exit_code=3) is LifecycleAction.ABORT_JOB
    assert resolved(task="worker", index=0, exit_code=3) is LifecycleAction.COMPLETE_JOB
    assert resolved(task="worker", index=0, exit_code=1) is LifecycleAction.RESTART_JOB


@pytest.mark.parametrize(
    ("stimulus", "want"),
    [
        (Stimulus(event=LifecycleEvent.OUT_OF_SYNC), LifecycleAction.SYNC_JOB),
        (Stimulus(event=LifecycleEvent.POD_RUNNING, task="task0", version=2), LifecycleAction.SYNC_JOB),
        (Stimulus(event=LifecycleEvent.POD_FAILED, task="task0", version=1), LifecycleAction.SYNC_JOB),
        (Stimulus(event=LifecycleEvent.POD_FAILED, task="task0", version=2), LifecycleAction.TERMINATE_JOB),
        (Stimulus(event=LifecycleEvent.POD_PENDING, task="task0", version=2), LifecycleAction.SYNC_JOB),
        (Stimulus(command=LifecycleAction.RESUME_JOB), LifecycleAction.RESUME_JOB),
    ],
)
def test_resolved_stimuli(stimulus, want):
    job = JobFacts(spec({}, policies=[{"events": ["*"], "action": "TerminateJob"}]), JobPhase.RUNNING, version=2)
    assert resolve(job, stimulus) is want


def test_task_completed_policy_stops_the_servers():
    done = [{"events": ["TaskCompleted"], "action": "CompleteJob"}]
    harness = JobHarness(spec({"name": "ps"}, {"name": "worker", "replicas": 2, "policies": done})).start()
    harness.report(PodPhase.SUCCEEDED, [PodRef("worker", 0, 1)])
    assert harness.phase == "running"
    harness.report(PodPhase.SUCCEEDED, [PodRef("worker", 1, 1)])
    assert (harness.phase, harness.last.stop) == ("completing", (PodRef("ps", 0, 1),))
    harness.stopped_pods_end()
    assert harness.phase == "completed"


def test_resumed_job_repeats_pods_without_success():
    harness = JobHarness(spec(WORKERS)).start()
    harness.report(PodPhase.SUCCEEDED, [PodRef("worker", 0, 1)])
    harness.report(PodPhase.FAILED, [PodRef("worker", 1, 1)], exit_code=1)
    harness.do(LifecycleAction.ABORT_JOB)
    assert (harness.phase, harness.last.stop) == ("aborting", (PodRef("worker", 2, 1),))
    harness.stopped_pods_end()
    assert harness.phase == "aborted"
    harness.do(LifecycleAction.RESUME_JOB)
    assert (harness.phase, harness.job.retry_count) == ("pending", 0)
    assert harness.admit().create == (PodRef("worker", 1, 2), PodRef("worker", 2, 2))
    harness.report(PodPhase.RUNNING, [PodRef("worker", 1, 2), PodRef("worker", 2, 2)])
    harness.report(PodPhase.SUCCEEDED, [PodRef("worker", 1, 2), PodRef("worker", 2, 2)])
    assert harness.phase == "completed"


def test_pending_job_is_aborted_at_once():
    harness = JobHarness(spec(WORKERS))
    assert [step.phase for step in harness.do(LifecycleAction.ABORT_JOB).steps] == ["aborting", "aborted"]


def test_restarting_job_can_be_aborted():
    harness = JobHarness(spec(WORKERS, policies=RESTART)).start()
    harness.report(PodPhase.FAILED, [PodRef("worker", 1, 1)])
    harness.do(LifecycleAction.ABORT_JOB)
    harness.stopped_pods_end()
    assert harness.phase == "aborted"


def test_restart_by_a_person_is_no_retry():
    harness = JobHarness(spec(WORKERS, max_retry=1)).start()
    for _ in range(3):
        harness.do(LifecycleAction.RESTART_JOB, by_person=True)
        harness.stopped_pods_end()
        harness.start()
    assert (harness.phase, harness.job.retry_count, harness.job.version) == ("running", 0, 4)


def test_evicted_pod_is_replaced_when_it_is_gone():
    harness = JobHarness(spec(WORKERS)).start()
    ref = PodRef("worker", 2, 1)
    harness.evict(ref)
    assert harness.last.create == ()
    harness.report(PodPhase.FAILED, [ref], exit_code=143)
    assert (harness.phase, harness.last.reason) == ("pending", "TooFewPods")
    assert harness.last.create == (PodRef("worker", 2, 2),)


def test_eviction_restarts_the_job_by_policy():
    harness = JobHarness(spec(WORKERS, policies=RESTART)).start()
    harness.evict(PodRef("worker", 2, 1))
    harness.report(PodPhase.FAILED, [PodRef("worker", 2, 1)], exit_code=143)
    assert (harness.phase, harness.job.retry_count) == ("restarting", 1)


def test_lost_pod_is_replaced_up_to_the_limit_of_its_task():
    harness = JobHarness(spec({**WORKERS, "max_retry": 2})).start()
    for attempt in (2, 3):
        harness.report(PodPhase.LOST, [harness.latest("worker", 0)])
        assert harness.last.create == (PodRef("worker", 0, attempt),)
        harness.report(PodPhase.RUNNING, [PodRef("worker", 0, attempt)])
    harness.report(PodPhase.LOST, [harness.latest("worker", 0)])
    assert (harness.phase, harness.last.create) == ("running", ())
    assert "worker-0 was lost" in harness.last.message


@pytest.mark.parametrize(
    ("action", "stopped"),
    [
        (LifecycleAction.RESTART_POD, [("worker", 1)]),
        (LifecycleAction.RESTART_PARTITION, [("worker", 0), ("worker", 1)]),
        (LifecycleAction.RESTART_TASK, [("worker", index) for index in range(4)]),
    ],
)
def test_partial_restart_keeps_the_admission(action, stopped):
    policies = [{"events": ["PodFailed"], "action": str(action)}]
    workers = {"name": "worker", "replicas": 4, "partition_size": 2}
    harness = JobHarness(spec({"name": "ps"}, workers, policies=policies)).start()
    harness.report(PodPhase.FAILED, [PodRef("worker", 1, 1)], exit_code=1)
    assert sorted((ref.task, ref.index) for ref in harness.pods if harness.pods[ref].stopping) == stopped
    harness.stopped_pods_end()
    assert str(harness.job.gang_phase) == "inqueue"
    assert sorted((ref.task, ref.index) for ref in harness.pods if ref.attempt == 2) == stopped
    assert harness.job.retry_count == 1


def test_partial_restart_needs_a_target():
    harness = JobHarness(spec(WORKERS)).start()
    with pytest.raises(Exception, match="Name the part"):
        harness.do(LifecycleAction.RESTART_POD)
    with pytest.raises(Exception, match="Name the part"):
        harness.do(LifecycleAction.RESTART_PARTITION, ActionTarget("worker"))
    assert harness.do(LifecycleAction.RESTART_TASK, ActionTarget("worker")).phase == "restarting"


def test_impossible_action_names_the_possible_phases():
    harness = JobHarness(spec(WORKERS)).start()
    harness.report(PodPhase.SUCCEEDED, harness.all_latest())
    with pytest.raises(ImpossibleTransition) as raised:
        harness.do(LifecycleAction.RESUME_JOB)
    assert raised.value.message == "The job is completed. ResumeJob is possible only when it is aborting or aborted."


@pytest.mark.parametrize("phase", JobPhase)
def test_every_phase_has_a_sync_transition(phase):
    assert (phase, LifecycleAction.SYNC_JOB) in TRANSITIONS


@pytest.mark.parametrize("phase", sorted(FINAL_JOB_PHASES))
def test_only_an_aborted_job_can_be_resumed(phase):
    supported = {action for row, action in TRANSITIONS if row is phase}
    assert (LifecycleAction.RESUME_JOB in supported) == (phase is JobPhase.ABORTED)
    assert not supported & {LifecycleAction.RESTART_JOB, LifecycleAction.RESTART_TASK, LifecycleAction.RESTART_POD}


def test_repeated_terminate_is_allowed():
    harness = JobHarness(spec(WORKERS)).start()
    for _ in range(2):
        harness.do(LifecycleAction.TERMINATE_JOB)
    harness.stopped_pods_end()
    assert harness.do(LifecycleAction.TERMINATE_JOB).phase == "terminated"


def test_simultaneous_last_successes_each_complete_the_task():
    job = JobFacts(spec(WORKERS), JobPhase.RUNNING)
    pods = [PodFacts("worker", index, 1, 1, PodPhase.SUCCEEDED) for index in range(3)]
    assert [stimulus.event for stimulus in stimuli_of(job, pods, pods[:2])] == [LifecycleEvent.TASK_COMPLETED] * 2
    assert [stimulus.event for stimulus in stimuli_of(job, pods[:2], pods[:2])] == [LifecycleEvent.OUT_OF_SYNC] * 2


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("event", "phase", "seconds", "want"),
    [
        ("PodPending", PodPhase.PENDING, 59, None),
        ("PodPending", PodPhase.PENDING, 60, (LifecycleAction.ABORT_JOB, ActionTarget("task0", 0))),
        ("PodPending", PodPhase.PREPARING, 61, (LifecycleAction.ABORT_JOB, ActionTarget("task0", 0))),
        ("PodPending", PodPhase.RUNNING, 600, None),
        ("PodFailed", PodPhase.FAILED, 61, (LifecycleAction.ABORT_JOB, ActionTarget("task0", 0))),
        ("PodFailed", PodPhase.SUCCEEDED, 61, None),
        ("TaskCompleted", PodPhase.SUCCEEDED, 59, None),
        ("TaskCompleted", PodPhase.SUCCEEDED, 61, (LifecycleAction.ABORT_JOB, ActionTarget("task0", 0))),
        ("*", PodPhase.RUNNING, 600, None),
        ("*", PodPhase.FAILED, 61, (LifecycleAction.ABORT_JOB, ActionTarget("task0", 0))),
        ("PodEvicted", PodPhase.LOST, 61, (LifecycleAction.ABORT_JOB, ActionTarget("task0", 0))),
    ],
)
def test_policy_timeout_acts_if_its_cause_remains(event, phase, seconds, want):
    policy = {"events": [event], "action": "AbortJob", "timeout_seconds": 60}
    job = JobFacts(spec({}, policies=[policy]), JobPhase.RUNNING)
    pod = PodFacts("task0", 0, 1, 1, phase, since=NOON)
    stimulus = Stimulus(event=LifecycleEvent(event), task="task0", index=0, version=1)
    assert resolve(job, stimulus) is LifecycleAction.SYNC_JOB
    assert overdue(job, [pod], NOON + timedelta(seconds=seconds)) == want


def test_running_replacement_cancels_a_delayed_action():
    policy = {"events": ["PodEvicted"], "action": "AbortJob", "timeout_seconds": 60}
    job = JobFacts(spec({}, policies=[policy]), JobPhase.RUNNING)
    gone = PodFacts("task0", 0, 1, 1, PodPhase.FAILED, stopping=True, evicted=True, since=NOON)
    later = NOON + timedelta(seconds=90)
    assert overdue(job, [gone, PodFacts("task0", 0, 2, 1, PodPhase.RUNNING, since=NOON)], later) is None
    waiting = PodFacts("task0", 0, 2, 1, PodPhase.PENDING, since=NOON)
    assert overdue(job, [gone, waiting], later) == (LifecycleAction.ABORT_JOB, ActionTarget("task0", 0))


def test_task_completed_timeout_starts_with_the_last_pod():
    policy = {"events": ["TaskCompleted"], "action": "CompleteJob", "timeout_seconds": 60}
    job = JobFacts(spec({"replicas": 2}, {}, policies=[policy]), JobPhase.RUNNING)
    late = NOON + timedelta(seconds=30)
    pods = [PodFacts("task0", index, 1, 1, PodPhase.SUCCEEDED, since=at) for index, at in enumerate((NOON, late))]
    assert overdue(job, pods[:1], NOON + timedelta(seconds=600)) is None
    assert overdue(job, pods, NOON + timedelta(seconds=89)) is None
    assert overdue(job, pods, NOON + timedelta(seconds=90)) == (LifecycleAction.COMPLETE_JOB, ActionTarget("task0", 0))


def test_task_failed_timeout_starts_when_a_pod_is_lost_for_good():
    policy = {"events": ["TaskFailed"], "action": "AbortJob", "timeout_seconds": 60}
    job = JobFacts(spec({"max_retry": 1}, {}, policies=[policy]), JobPhase.RUNNING)
    lost = [PodFacts("task0", 0, attempt, 1, PodPhase.LOST, since=NOON) for attempt in (1, 2)]
    later = NOON + timedelta(seconds=60)
    assert overdue(job, lost[:1], later) is None
    assert overdue(job, lost, later) == (LifecycleAction.ABORT_JOB, ActionTarget("task0", 0))


@pytest.mark.parametrize(
    "gone", [{"phase": PodPhase.LOST}, {"phase": PodPhase.FAILED, "stopping": True, "evicted": True}]
)
def test_delayed_restart_happens_once(gone):
    """The recorded cause remains, but a later attempt was already made for it."""
    policy = {"events": ["PodEvicted"], "action": "RestartPod", "timeout_seconds": 60}
    job = JobFacts(spec({}, policies=[policy]), JobPhase.RUNNING)
    first = PodFacts("task0", 0, 1, 1, since=NOON, **gone)
    second = PodFacts("task0", 0, 2, 1, PodPhase.PENDING, since=NOON)
    later = NOON + timedelta(seconds=60)
    assert overdue(job, [first, second], later) == (LifecycleAction.RESTART_POD, ActionTarget("task0", 0))
    stopped = replace(second, phase=PodPhase.FAILED, stopping=True)
    assert overdue(job, [first, stopped, replace(second, attempt=3)], later) is None


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("phase", JobPhase)
def test_only_an_active_job_reaches_its_deadline(phase):
    job = JobFacts(spec(WORKERS, active_deadline_seconds=90), phase, deadline_at=NOON)
    is_active = phase in (JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING)
    assert not job.is_out_of_time(NOON - timedelta(seconds=1))
    assert job.is_out_of_time(NOON) == is_active
    assert not replace(job, deadline_at=None).is_out_of_time(NOON)


def test_job_at_its_deadline_fails_with_a_message():
    harness = JobHarness(spec(WORKERS, active_deadline_seconds=5430)).start()
    harness.report(PodPhase.SUCCEEDED, [PodRef("worker", 0, 1)])
    outcome = expire(harness.job, list(harness.pods.values()), NOON)
    assert (outcome.phase, outcome.gang_phase, outcome.reason) == ("failed", "completed", "DeadlineExceeded")
    assert outcome.message == "The job reached its time limit of 1 h 30 min 30 s, including restarts."
    assert outcome.stop == (PodRef("worker", 1, 1), PodRef("worker", 2, 1))
    assert (outcome.create, outcome.retry_count) == ((), 0)


def test_task_can_complete_with_its_first_replica():
    completes = {"events": ["TaskCompleted"], "action": "CompleteJob"}
    harness = JobHarness(spec({**WORKERS, "success_policy": "FirstReplica", "policies": [completes]})).start()
    harness.report(PodPhase.SUCCEEDED, [PodRef("worker", 1, 1)])
    assert harness.phase == "running"
    harness.report(PodPhase.SUCCEEDED, [PodRef("worker", 0, 1)])
    harness.stopped_pods_end()
    assert harness.phase == "completed"


def test_timeout_of_a_completed_task_counts_from_its_first_replica():
    rule = {"events": ["TaskCompleted"], "action": "CompleteJob", "timeout_seconds": 60}
    job = JobFacts(spec({**WORKERS, "success_policy": "FirstReplica", "policies": [rule]}), JobPhase.RUNNING)
    first = PodFacts("worker", 0, 1, 1, PodPhase.SUCCEEDED, since=NOW)
    second = PodFacts("worker", 1, 1, 1, PodPhase.SUCCEEDED, since=NOW + timedelta(seconds=30))
    pods = [first, second, PodFacts("worker", 2, 1, 1, PodPhase.RUNNING, since=NOW)]
    assert overdue(job, pods, NOW + timedelta(seconds=59)) is None
    assert overdue(job, pods[1:], NOW + timedelta(seconds=300)) is None
    expected = (LifecycleAction.COMPLETE_JOB, ActionTarget("worker", 0))
    assert overdue(job, pods, NOW + timedelta(seconds=60)) == expected
