"""What a person may rely on in the life of a job, told as short stories."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.domain.lifecycle.worlds import World, spec

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


def test_no_pod_is_made_before_the_gang_is_let_in():
    world = World(spec(WORKERS))
    assert world.sync().create == ()
    assert world.admit().create == (PodRef("worker", 0, 1), PodRef("worker", 1, 1), PodRef("worker", 2, 1))
    assert world.sync().create == ()


def test_a_job_runs_when_its_gang_does_and_completes_when_all_succeed():
    world = World(spec(WORKERS))
    world.admit()
    world.report(PodPhase.RUNNING, [PodRef("worker", 0, 1), PodRef("worker", 1, 1)])
    assert world.phase == "pending"
    world.report(PodPhase.RUNNING, [PodRef("worker", 2, 1)])
    assert world.phase == "running"
    world.report(PodPhase.SUCCEEDED, world.all_latest())
    assert world.phase == "completed"
    assert world.last.message == "3 of 3 pods succeeded."
    assert str(world.job.gang_phase) == "completed"


def test_news_that_come_late_and_all_at_once_lead_through_every_phase():
    world = World(spec(WORKERS))
    world.admit()
    pods = [PodFacts(ref.task, ref.index, ref.attempt, 1, PodPhase.SUCCEEDED) for ref in world.pods]
    outcome = advance(world.job, pods, LifecycleAction.SYNC_JOB)
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
def test_how_a_job_is_judged_when_all_pods_have_ended(fields, tasks, succeeded, want, reason):
    world = World(spec(*tasks, **fields)).start()
    refs = world.all_latest()
    world.report(PodPhase.FAILED, refs[succeeded:], exit_code=1)
    world.report(PodPhase.SUCCEEDED, refs[:succeeded])
    assert (world.phase, world.last.reason) == (want, reason)


def test_enough_successes_complete_the_job_and_stop_the_rest():
    world = World(spec(WORKERS, min_success=1)).start()
    world.report(PodPhase.SUCCEEDED, [PodRef("worker", 1, 1)])
    assert world.phase == "completed"
    assert world.last.stop == (PodRef("worker", 0, 1), PodRef("worker", 2, 1))


def test_a_failed_pod_without_a_policy_leaves_the_others_at_work_and_is_told():
    world = World(spec(WORKERS)).start()
    world.report(PodPhase.FAILED, [PodRef("worker", 1, 1)], exit_code=9)
    assert world.phase == "running"
    assert (world.last.stop, world.last.create) == ((), ())
    assert "worker-1 failed with exit code 9" in world.last.message


def test_a_restart_stops_all_and_waits_for_admission_again():
    world = World(spec(WORKERS, policies=RESTART)).start()
    world.report(PodPhase.FAILED, [PodRef("worker", 1, 1)], exit_code=9)
    assert world.phase == "restarting"
    assert world.last.message == "worker-1 failed with exit code 9. Restart 1 of 3."
    assert world.last.stop == (PodRef("worker", 0, 1), PodRef("worker", 2, 1))
    world.stopped_pods_end()
    assert (world.phase, str(world.job.gang_phase), world.last.create) == ("pending", "pending", ())
    assert world.admit().create == (PodRef("worker", 0, 2), PodRef("worker", 1, 2), PodRef("worker", 2, 2))


def test_two_pods_that_fail_together_are_one_restart():
    world = World(spec(WORKERS, policies=RESTART)).start()
    world.report(PodPhase.FAILED, [PodRef("worker", 1, 1), PodRef("worker", 2, 1)], exit_code=9)
    assert (world.job.retry_count, world.job.version) == (1, 2)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_max_retry_is_the_number_of_restarts_that_are_done(limit):
    world = World(spec(WORKERS, policies=RESTART, max_retry=limit))
    for _ in range(limit + 1):
        assert world.phase == "pending"
        world.start()
        world.report(PodPhase.FAILED, [world.latest("worker", 0)], exit_code=1)
        world.stopped_pods_end()
    assert (world.phase, world.last.reason, world.job.retry_count) == ("failed", "", limit)
    assert max(ref.attempt for ref in world.pods) == limit + 1


def test_a_job_without_retries_left_tells_what_failed():
    world = World(spec(WORKERS, policies=RESTART, max_retry=1))
    for _ in range(2):
        world.start()
        world.report(PodPhase.FAILED, [world.latest("worker", 0)], exit_code=1)
        told = world.last
        world.stopped_pods_end()
    assert told.reason == "RetriesExhausted"
    assert told.message == ("worker-0 failed with exit code 1. The job was restarted once, the maximum.")


def test_the_policies_of_a_task_come_before_those_of_the_job():
    tasks = [{"name": "ps", "policies": [{"events": ["*"], "action": "AbortJob"}]}, {"name": "worker"}]
    job = JobFacts(spec(*tasks, policies=[{"exit_code": 3, "action": "CompleteJob"}, *RESTART]), JobPhase.RUNNING)

    def answer(**fields):
        return resolve(job, Stimulus(event=LifecycleEvent.POD_FAILED, version=1, **fields))

    assert answer(task="ps", index=0, exit_code=3) is LifecycleAction.ABORT_JOB
    assert answer(task="worker", index=0, exit_code=3) is LifecycleAction.COMPLETE_JOB
    assert answer(task="worker", index=0, exit_code=1) is LifecycleAction.RESTART_JOB


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
def test_which_stimuli_count(stimulus, want):
    job = JobFacts(spec({}, policies=[{"events": ["*"], "action": "TerminateJob"}]), JobPhase.RUNNING, version=2)
    assert resolve(job, stimulus) is want


def test_the_servers_of_a_training_end_when_its_workers_are_done():
    done = [{"events": ["TaskCompleted"], "action": "CompleteJob"}]
    world = World(spec({"name": "ps"}, {"name": "worker", "replicas": 2, "policies": done})).start()
    world.report(PodPhase.SUCCEEDED, [PodRef("worker", 0, 1)])
    assert world.phase == "running"
    world.report(PodPhase.SUCCEEDED, [PodRef("worker", 1, 1)])
    assert (world.phase, world.last.stop) == ("completing", (PodRef("ps", 0, 1),))
    world.stopped_pods_end()
    assert world.phase == "completed"


def test_an_aborted_job_goes_on_with_what_had_not_succeeded():
    world = World(spec(WORKERS)).start()
    world.report(PodPhase.SUCCEEDED, [PodRef("worker", 0, 1)])
    world.report(PodPhase.FAILED, [PodRef("worker", 1, 1)], exit_code=1)
    world.do(LifecycleAction.ABORT_JOB)
    assert (world.phase, world.last.stop) == ("aborting", (PodRef("worker", 2, 1),))
    world.stopped_pods_end()
    assert world.phase == "aborted"
    world.do(LifecycleAction.RESUME_JOB)
    assert (world.phase, world.job.retry_count) == ("pending", 0)
    assert world.admit().create == (PodRef("worker", 1, 2), PodRef("worker", 2, 2))
    world.report(PodPhase.RUNNING, [PodRef("worker", 1, 2), PodRef("worker", 2, 2)])
    world.report(PodPhase.SUCCEEDED, [PodRef("worker", 1, 2), PodRef("worker", 2, 2)])
    assert world.phase == "completed"


def test_a_job_that_waits_is_aborted_at_once():
    world = World(spec(WORKERS))
    assert [step.phase for step in world.do(LifecycleAction.ABORT_JOB).steps] == ["aborting", "aborted"]


def test_a_restarting_job_can_be_aborted():
    world = World(spec(WORKERS, policies=RESTART)).start()
    world.report(PodPhase.FAILED, [PodRef("worker", 1, 1)])
    world.do(LifecycleAction.ABORT_JOB)
    world.stopped_pods_end()
    assert world.phase == "aborted"


def test_a_persons_restart_is_not_counted():
    world = World(spec(WORKERS, max_retry=1)).start()
    for _ in range(3):
        world.do(LifecycleAction.RESTART_JOB, by_person=True)
        world.stopped_pods_end()
        world.start()
    assert (world.phase, world.job.retry_count, world.job.version) == ("running", 0, 4)


def test_an_evicted_pod_is_replaced_when_it_is_gone():
    world = World(spec(WORKERS)).start()
    ref = PodRef("worker", 2, 1)
    world.evict(ref)
    assert world.last.create == ()
    world.report(PodPhase.FAILED, [ref], exit_code=143)
    assert (world.phase, world.last.reason) == ("pending", "TooFewPods")
    assert world.last.create == (PodRef("worker", 2, 2),)


def test_an_eviction_restarts_the_job_where_a_policy_says_so():
    world = World(spec(WORKERS, policies=RESTART)).start()
    world.evict(PodRef("worker", 2, 1))
    world.report(PodPhase.FAILED, [PodRef("worker", 2, 1)], exit_code=143)
    assert (world.phase, world.job.retry_count) == ("restarting", 1)


def test_a_lost_pod_is_replaced_as_often_as_its_task_allows():
    world = World(spec({**WORKERS, "max_retry": 2})).start()
    for attempt in (2, 3):
        world.report(PodPhase.LOST, [world.latest("worker", 0)])
        assert world.last.create == (PodRef("worker", 0, attempt),)
        world.report(PodPhase.RUNNING, [PodRef("worker", 0, attempt)])
    world.report(PodPhase.LOST, [world.latest("worker", 0)])
    assert (world.phase, world.last.create) == ("running", ())
    assert "worker-0 was lost" in world.last.message


@pytest.mark.parametrize(
    ("action", "stopped"),
    [
        (LifecycleAction.RESTART_POD, [("worker", 1)]),
        (LifecycleAction.RESTART_PARTITION, [("worker", 0), ("worker", 1)]),
        (LifecycleAction.RESTART_TASK, [("worker", index) for index in range(4)]),
    ],
)
def test_a_part_is_restarted_alone_and_the_gang_keeps_its_admission(action, stopped):
    policies = [{"events": ["PodFailed"], "action": str(action)}]
    workers = {"name": "worker", "replicas": 4, "partition_size": 2}
    world = World(spec({"name": "ps"}, workers, policies=policies)).start()
    world.report(PodPhase.FAILED, [PodRef("worker", 1, 1)], exit_code=1)
    assert sorted((ref.task, ref.index) for ref in world.pods if world.pods[ref].stopping) == stopped
    world.stopped_pods_end()
    assert str(world.job.gang_phase) == "inqueue"
    assert sorted((ref.task, ref.index) for ref in world.pods if ref.attempt == 2) == stopped
    assert world.job.retry_count == 1


def test_to_restart_a_part_needs_a_part():
    world = World(spec(WORKERS)).start()
    with pytest.raises(Exception, match="Name the part"):
        world.do(LifecycleAction.RESTART_POD)
    with pytest.raises(Exception, match="Name the part"):
        world.do(LifecycleAction.RESTART_PARTITION, ActionTarget("worker"))
    assert world.do(LifecycleAction.RESTART_TASK, ActionTarget("worker")).phase == "restarting"


def test_an_impossible_action_tells_its_story():
    world = World(spec(WORKERS)).start()
    world.report(PodPhase.SUCCEEDED, world.all_latest())
    with pytest.raises(ImpossibleTransition) as raised:
        world.do(LifecycleAction.RESUME_JOB)
    assert raised.value.message == "The job is completed. ResumeJob is possible only when it is aborting or aborted."


@pytest.mark.parametrize("phase", JobPhase)
def test_the_table_has_a_rule_for_looking_at_every_phase(phase):
    assert (phase, LifecycleAction.SYNC_JOB) in TRANSITIONS


@pytest.mark.parametrize("phase", sorted(FINAL_JOB_PHASES))
def test_only_an_aborted_job_can_be_brought_back(phase):
    knows = {action for row, action in TRANSITIONS if row is phase}
    assert (LifecycleAction.RESUME_JOB in knows) == (phase is JobPhase.ABORTED)
    assert not knows & {LifecycleAction.RESTART_JOB, LifecycleAction.RESTART_TASK, LifecycleAction.RESTART_POD}


def test_to_ask_twice_for_the_same_end_is_to_find_it_done():
    world = World(spec(WORKERS)).start()
    for _ in range(2):
        world.do(LifecycleAction.TERMINATE_JOB)
    world.stopped_pods_end()
    assert world.do(LifecycleAction.TERMINATE_JOB).phase == "terminated"


def test_the_last_successes_of_a_task_that_come_together_all_tell_of_it():
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
def test_a_policy_with_a_timeout_acts_when_it_is_still_so(event, phase, seconds, want):
    policy = {"events": [event], "action": "AbortJob", "timeout_seconds": 60}
    job = JobFacts(spec({}, policies=[policy]), JobPhase.RUNNING)
    pod = PodFacts("task0", 0, 1, 1, phase, since=NOON)
    stimulus = Stimulus(event=LifecycleEvent(event), task="task0", index=0, version=1)
    assert resolve(job, stimulus) is LifecycleAction.SYNC_JOB
    assert overdue(job, [pod], NOON + timedelta(seconds=seconds)) == want


def test_a_replacement_that_runs_calls_a_delayed_action_off():
    policy = {"events": ["PodEvicted"], "action": "AbortJob", "timeout_seconds": 60}
    job = JobFacts(spec({}, policies=[policy]), JobPhase.RUNNING)
    gone = PodFacts("task0", 0, 1, 1, PodPhase.FAILED, stopping=True, evicted=True, since=NOON)
    later = NOON + timedelta(seconds=90)
    assert overdue(job, [gone, PodFacts("task0", 0, 2, 1, PodPhase.RUNNING, since=NOON)], later) is None
    waiting = PodFacts("task0", 0, 2, 1, PodPhase.PENDING, since=NOON)
    assert overdue(job, [gone, waiting], later) == (LifecycleAction.ABORT_JOB, ActionTarget("task0", 0))


def test_a_task_is_completed_for_a_policy_with_a_timeout_when_its_last_pod_is():
    policy = {"events": ["TaskCompleted"], "action": "CompleteJob", "timeout_seconds": 60}
    job = JobFacts(spec({"replicas": 2}, {}, policies=[policy]), JobPhase.RUNNING)
    late = NOON + timedelta(seconds=30)
    pods = [PodFacts("task0", index, 1, 1, PodPhase.SUCCEEDED, since=at) for index, at in enumerate((NOON, late))]
    assert overdue(job, pods[:1], NOON + timedelta(seconds=600)) is None
    assert overdue(job, pods, NOON + timedelta(seconds=89)) is None
    assert overdue(job, pods, NOON + timedelta(seconds=90)) == (LifecycleAction.COMPLETE_JOB, ActionTarget("task0", 0))


def test_a_pod_that_is_lost_for_good_sets_a_policy_for_its_task_waiting():
    policy = {"events": ["TaskFailed"], "action": "AbortJob", "timeout_seconds": 60}
    job = JobFacts(spec({"max_retry": 1}, {}, policies=[policy]), JobPhase.RUNNING)
    lost = [PodFacts("task0", 0, attempt, 1, PodPhase.LOST, since=NOON) for attempt in (1, 2)]
    later = NOON + timedelta(seconds=60)
    assert overdue(job, lost[:1], later) is None
    assert overdue(job, lost, later) == (LifecycleAction.ABORT_JOB, ActionTarget("task0", 0))


@pytest.mark.parametrize(
    "gone", [{"phase": PodPhase.LOST}, {"phase": PodPhase.FAILED, "stopping": True, "evicted": True}]
)
def test_a_delayed_restart_is_done_once(gone):
    """What it was about stays on record; the attempt after it was the answer."""
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
def test_only_a_job_that_goes_on_runs_out_of_time(phase):
    job = JobFacts(spec(WORKERS, active_deadline_seconds=90), phase, deadline_at=NOON)
    goes_on = phase in (JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING)
    assert not job.is_out_of_time(NOON - timedelta(seconds=1))
    assert job.is_out_of_time(NOON) == goes_on
    assert not replace(job, deadline_at=None).is_out_of_time(NOON)


def test_a_job_whose_time_is_over_has_failed_and_says_so():
    world = World(spec(WORKERS, active_deadline_seconds=5430)).start()
    world.report(PodPhase.SUCCEEDED, [PodRef("worker", 0, 1)])
    outcome = expire(world.job, list(world.pods.values()))
    assert (outcome.phase, outcome.gang_phase, outcome.reason) == ("failed", "completed", "DeadlineExceeded")
    assert outcome.message == "The job reached its time limit of 1 h 30 min 30 s, including restarts."
    assert outcome.stop == (PodRef("worker", 1, 1), PodRef("worker", 2, 1))
    assert (outcome.create, outcome.retry_count) == ((), 0)
