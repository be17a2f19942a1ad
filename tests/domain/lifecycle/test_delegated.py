"""Delegated jobs: requests to Volcano, how long they are pending, and when Hekla's phase follows Volcano's."""

import pytest
from tests.domain.lifecycle.harness import spec

from hekla.domain.errors import Refused
from hekla.domain.lifecycle import ImpossibleTransition, JobFacts, PodFacts
from hekla.domain.lifecycle.delegated import follows, is_complete, pending_request, phases_between, request
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction

RUNNING, ABORTING, ABORTED = JobPhase.RUNNING, JobPhase.ABORTING, JobPhase.ABORTED
RESTARTING, FAILED, PENDING = JobPhase.RESTARTING, JobPhase.FAILED, JobPhase.PENDING
ENDS = {
    LifecycleAction.ABORT_JOB: ABORTING,
    LifecycleAction.COMPLETE_JOB: JobPhase.COMPLETING,
    LifecycleAction.TERMINATE_JOB: JobPhase.TERMINATING,
}


def job(phase: JobPhase = RUNNING, **fields) -> JobFacts:
    return JobFacts(spec({"replicas": 2}), phase, **fields)


@pytest.mark.parametrize("action", ENDS)
def test_request_changes_only_the_phase(action) -> None:
    outcome = request(job(retry_count=2), action)
    assert (outcome.phase, outcome.retry_count, outcome.stop, outcome.create) == (ENDS[action], 2, (), ())


@pytest.mark.parametrize("action", ENDS)
@pytest.mark.parametrize("volcano_phase", [PENDING, RUNNING, RESTARTING])
def test_request_is_pending_until_volcano_acts_on_it(action, volcano_phase) -> None:
    outcome = request(job(), action)
    assert pending_request(outcome.phase, outcome.reason, volcano_phase) is action
    assert not follows(outcome.phase, outcome.reason, volcano_phase)


@pytest.mark.parametrize("action", ENDS)
def test_job_that_ended_first_has_volcanos_phase(action) -> None:
    outcome = request(job(), action)
    assert pending_request(outcome.phase, outcome.reason, JobPhase.COMPLETED) is None
    assert follows(outcome.phase, outcome.reason, JobPhase.COMPLETED)


@pytest.mark.parametrize("phase", [ABORTING, ABORTED])
def test_resume_is_requested_while_volcanos_job_is_aborted(phase) -> None:
    outcome = request(job(phase), LifecycleAction.RESUME_JOB)
    assert outcome.phase is RESTARTING
    assert pending_request(outcome.phase, outcome.reason, phase) is LifecycleAction.RESUME_JOB
    assert follows(outcome.phase, outcome.reason, PENDING)


def test_volcanos_own_changes_are_no_requests() -> None:
    assert pending_request(ABORTING, "Aborting", RUNNING) is None
    assert pending_request(RESTARTING, "Restarting", ABORTED) is None
    assert follows(ABORTED, "Aborted", RUNNING)


@pytest.mark.parametrize("final_phase", [FAILED, JobPhase.TERMINATED, JobPhase.COMPLETED])
def test_job_finished_in_hekla_is_terminated_in_volcano(final_phase) -> None:
    assert pending_request(final_phase, "DeadlineExceeded", RUNNING) is LifecycleAction.TERMINATE_JOB
    assert not follows(final_phase, "DeadlineExceeded", JobPhase.TERMINATED)


@pytest.mark.parametrize("volcano_phase", [PENDING, RUNNING])
def test_restart_is_requested_until_volcano_has_counted_it(volcano_phase) -> None:
    outcome = request(job(), LifecycleAction.RESTART_JOB)
    assert outcome.phase is RESTARTING
    assert pending_request(outcome.phase, outcome.reason, volcano_phase) is LifecycleAction.RESTART_JOB
    assert pending_request(outcome.phase, outcome.reason, volcano_phase, restarted=True) is None
    assert pending_request(outcome.phase, outcome.reason, RESTARTING) is None
    assert follows(outcome.phase, outcome.reason, volcano_phase, restarted=True)


def test_unobserved_resume_is_not_requested_again() -> None:
    outcome = request(job(ABORTED), LifecycleAction.RESUME_JOB)
    assert pending_request(outcome.phase, outcome.reason, ABORTED, restarted=True) is None
    assert follows(outcome.phase, outcome.reason, ABORTED, restarted=True)


def test_unobserved_restart_is_followed() -> None:
    assert follows(RUNNING, "Running", RUNNING, restarted=True)
    assert not follows(RUNNING, "Running", RUNNING)
    assert not follows(RESTARTING, "RestartRequested", RESTARTING, restarted=True), "it is on its way"


@pytest.mark.parametrize(
    ("phase", "action"), [(RUNNING, LifecycleAction.RESTART_JOB), (ABORTED, LifecycleAction.RESUME_JOB)]
)
def test_restart_beyond_volcanos_limit_is_refused(phase, action) -> None:
    assert request(job(phase, retry_count=1), action).phase is RESTARTING
    with pytest.raises(Refused, match="At number 3"):
        request(job(phase, retry_count=2), action)


def test_unsupported_requests_are_refused() -> None:
    with pytest.raises(Refused, match="only the whole job"):
        request(job(), LifecycleAction.RESTART_POD)
    with pytest.raises(ImpossibleTransition):
        request(job(JobPhase.COMPLETED), LifecycleAction.ABORT_JOB)


def test_repeated_request_changes_nothing() -> None:
    assert request(job(ABORTING), LifecycleAction.ABORT_JOB).steps == ()
    assert request(job(ABORTED), LifecycleAction.ABORT_JOB).steps == ()


@pytest.mark.parametrize(
    ("hekla_phase", "volcano_phase", "has_started", "restarts", "phases"),
    [
        (PENDING, RUNNING, False, 0, [RUNNING]),
        (PENDING, JobPhase.COMPLETED, False, 0, [RUNNING, JobPhase.COMPLETED]),
        (RUNNING, RUNNING, True, 1, [RESTARTING, RUNNING]),
        (RUNNING, PENDING, True, 1, [RESTARTING, PENDING]),
        (RESTARTING, RUNNING, True, 1, [RUNNING]),
    ],
)
def test_unobserved_phases_are_reported(hekla_phase, volcano_phase, has_started, restarts, phases) -> None:
    assert phases_between(job(hekla_phase), volcano_phase, has_started=has_started, restarts=restarts) == phases


@pytest.mark.parametrize(
    ("policy", "replica", "phase", "expected"),
    [
        ("FirstReplica", 0, RUNNING, True),
        ("FirstReplica", 0, PENDING, True),
        ("FirstReplica", 1, RUNNING, False),
        ("FirstReplica", 0, RESTARTING, False),
        ("AllReplicas", 0, RUNNING, False),
    ],
)
def test_first_replica_completes_the_job(policy, replica, phase, expected) -> None:
    completes = {"events": ["TaskCompleted"], "action": "CompleteJob"}
    job = JobFacts(spec({"name": "w", "replicas": 2, "success_policy": policy, "policies": [completes]}), phase)
    assert is_complete(job, [PodFacts("w", replica, 1, 1, PodPhase.SUCCEEDED)]) is expected


def test_first_replica_alone_completes_nothing() -> None:
    job = JobFacts(spec({"name": "w", "replicas": 2, "success_policy": "FirstReplica"}), RUNNING)
    assert not is_complete(job, [PodFacts("w", 0, 1, 1, PodPhase.SUCCEEDED)])
