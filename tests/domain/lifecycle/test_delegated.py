"""Jobs that Volcano leads: what a wish becomes, what is asked for it, and when our phase follows."""

import pytest
from tests.domain.lifecycle.worlds import spec

from hekla.domain.errors import Refused
from hekla.domain.lifecycle import ImpossibleTransition, JobFacts
from hekla.domain.lifecycle.delegated import follows, pending_request, phases_between, request
from hekla.domain.phases import JobPhase
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
def test_a_wish_enters_the_phase_that_says_so_and_touches_nothing_else(action) -> None:
    outcome = request(job(retry_count=2), action)
    assert (outcome.phase, outcome.retry_count, outcome.stop, outcome.create) == (ENDS[action], 2, (), ())


@pytest.mark.parametrize("action", ENDS)
@pytest.mark.parametrize("theirs", [PENDING, RUNNING, RESTARTING])
def test_a_wish_is_asked_for_until_it_is_begun_and_stays_as_long(action, theirs) -> None:
    wished = request(job(), action)
    assert pending_request(wished.phase, wished.reason, theirs) is action
    assert not follows(wished.phase, wished.reason, theirs)


@pytest.mark.parametrize("action", ENDS)
def test_a_job_that_ended_first_is_told_as_it_ended(action) -> None:
    wished = request(job(), action)
    assert pending_request(wished.phase, wished.reason, JobPhase.COMPLETED) is None
    assert follows(wished.phase, wished.reason, JobPhase.COMPLETED)


@pytest.mark.parametrize("phase", [ABORTING, ABORTED])
def test_a_job_is_resumed_while_it_is_aborted_there(phase) -> None:
    wished = request(job(phase), LifecycleAction.RESUME_JOB)
    assert wished.phase is RESTARTING
    assert pending_request(wished.phase, wished.reason, phase) is LifecycleAction.RESUME_JOB
    assert follows(wished.phase, wished.reason, PENDING)


def test_what_volcano_does_by_itself_is_no_wish() -> None:
    assert pending_request(ABORTING, "Aborting", RUNNING) is None
    assert pending_request(RESTARTING, "Restarting", ABORTED) is None
    assert follows(ABORTED, "Aborted", RUNNING)


@pytest.mark.parametrize("over", [FAILED, JobPhase.TERMINATED, JobPhase.COMPLETED])
def test_what_is_over_here_is_ended_there_and_stays_as_it_is(over) -> None:
    assert pending_request(over, "DeadlineExceeded", RUNNING) is LifecycleAction.TERMINATE_JOB
    assert not follows(over, "DeadlineExceeded", JobPhase.TERMINATED)


@pytest.mark.parametrize("theirs", [PENDING, RUNNING])
def test_a_restart_is_asked_for_until_it_is_counted_and_never_after(theirs) -> None:
    wished = request(job(), LifecycleAction.RESTART_JOB)
    assert wished.phase is RESTARTING
    assert pending_request(wished.phase, wished.reason, theirs) is LifecycleAction.RESTART_JOB
    assert pending_request(wished.phase, wished.reason, theirs, restarted=True) is None
    assert pending_request(wished.phase, wished.reason, RESTARTING) is None
    assert follows(wished.phase, wished.reason, theirs, restarted=True)


def test_a_job_that_was_resumed_and_halted_again_before_anybody_looked_is_not_resumed_twice() -> None:
    wished = request(job(ABORTED), LifecycleAction.RESUME_JOB)
    assert pending_request(wished.phase, wished.reason, ABORTED, restarted=True) is None
    assert follows(wished.phase, wished.reason, ABORTED, restarted=True)


def test_a_restart_that_nobody_saw_is_told() -> None:
    assert follows(RUNNING, "Running", RUNNING, restarted=True)
    assert not follows(RUNNING, "Running", RUNNING)
    assert not follows(RESTARTING, "RestartRequested", RESTARTING, restarted=True), "it is on its way"


@pytest.mark.parametrize(
    ("phase", "action"), [(RUNNING, LifecycleAction.RESTART_JOB), (ABORTED, LifecycleAction.RESUME_JOB)]
)
def test_a_beginning_at_which_volcano_would_let_the_job_fail_is_refused(phase, action) -> None:
    assert request(job(phase, retry_count=1), action).phase is RESTARTING
    with pytest.raises(Refused, match="At number 3"):
        request(job(phase, retry_count=2), action)


def test_what_cannot_be_asked_of_volcano_is_refused() -> None:
    with pytest.raises(Refused, match="only the whole job"):
        request(job(), LifecycleAction.RESTART_POD)
    with pytest.raises(ImpossibleTransition):
        request(job(JobPhase.COMPLETED), LifecycleAction.ABORT_JOB)


def test_to_wish_a_thing_again_changes_nothing() -> None:
    assert request(job(ABORTING), LifecycleAction.ABORT_JOB).steps == ()
    assert request(job(ABORTED), LifecycleAction.ABORT_JOB).steps == ()


@pytest.mark.parametrize(
    ("ours", "theirs", "has_started", "restarts", "phases"),
    [
        (PENDING, RUNNING, False, 0, [RUNNING]),
        (PENDING, JobPhase.COMPLETED, False, 0, [RUNNING, JobPhase.COMPLETED]),
        (RUNNING, RUNNING, True, 1, [RESTARTING, RUNNING]),
        (RUNNING, PENDING, True, 1, [RESTARTING, PENDING]),
        (RESTARTING, RUNNING, True, 1, [RUNNING]),
    ],
)
def test_what_was_over_before_anybody_looked_is_told_too(ours, theirs, has_started, restarts, phases) -> None:
    assert phases_between(job(ours), theirs, has_started=has_started, restarts=restarts) == phases
