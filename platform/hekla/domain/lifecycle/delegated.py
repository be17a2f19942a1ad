"""Jobs that somebody else leads, by the same phases as ours: what a person's wish means there.

A wish only enters the phase that says so. All else of such a job follows what its leader says of it.
"""

from hekla.domain.errors import Refused
from hekla.domain.lifecycle.facts import JobFacts
from hekla.domain.lifecycle.messages import FactMessage, fact
from hekla.domain.lifecycle.transitions import TRANSITIONS, ImpossibleTransition, JobOutcome, PhaseChange
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.translation import translate

_REQUESTS = {
    LifecycleAction.ABORT_JOB: PhaseChange(JobPhase.ABORTING, "AbortRequested", FactMessage()),
    LifecycleAction.COMPLETE_JOB: PhaseChange(JobPhase.COMPLETING, "CompleteRequested", FactMessage()),
    LifecycleAction.TERMINATE_JOB: PhaseChange(JobPhase.TERMINATING, "TerminateRequested", FactMessage()),
    LifecycleAction.RESUME_JOB: PhaseChange(JobPhase.RESTARTING, "Resumed", FactMessage(fact("resumed"))),
    LifecycleAction.RESTART_JOB: PhaseChange(
        JobPhase.RESTARTING, "RestartRequested", FactMessage(fact("restart_asked"))
    ),
}
_BEGIN_ANEW = frozenset({LifecycleAction.RESUME_JOB, LifecycleAction.RESTART_JOB})
_PLACED = frozenset({JobPhase.PENDING, JobPhase.RUNNING})
_GOING_ON = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING})
_HALTED = frozenset({JobPhase.ABORTING, JobPhase.ABORTED})


def request(job: JobFacts, action: LifecycleAction) -> JobOutcome:
    """What a person asks for. Raises Refused for what cannot be asked of the leader, ImpossibleTransition as usual."""
    if action not in _REQUESTS:
        raise Refused(
            translate("Volcano leads this job, and can be asked to restart it as a whole only. Restart the job.")
        )
    if (job.phase, action) not in TRANSITIONS:
        raise ImpossibleTransition(job.phase, action)
    step = _REQUESTS[action]
    if action in _BEGIN_ANEW and job.phase is not step.phase:
        _require_a_restart_left(job)
    is_so = job.phase is step.phase or (job.phase is JobPhase.ABORTED and action is LifecycleAction.ABORT_JOB)
    return outcome_of(job, () if is_so else (step,))


def refusal(job: JobFacts, action: LifecycleAction) -> str:
    """Why a person may not wish for that; empty where they may."""
    try:
        request(job, action)
    except Refused as refused:
        return str(refused)
    return ""


def _require_a_restart_left(job: JobFacts) -> None:
    """Volcano counts beginnings that people ask for like its own, and lets the job fail at the last. Raises Refused."""
    if job.retry_count + 1 >= job.spec.max_retry:
        raise Refused(
            translate(
                "Volcano counts restarts that people ask for too, and at number {most} (max_retry) the job fails; this "
                "would be it. Clone the job to run it again.",
                most=job.spec.max_retry,
            )
        )


def outcome_of(job: JobFacts, steps: tuple[PhaseChange, ...] = ()) -> JobOutcome:
    """The job as it is, after these steps."""
    last = steps[-1] if steps else PhaseChange(job.phase, "", "")
    return JobOutcome(
        phase=last.phase,
        gang_phase=job.gang_phase,
        version=job.version,
        retry_count=job.retry_count,
        reason=last.reason,
        message=last.message,
        steps=steps,
    )


def is_request(reason: str) -> bool:
    """Whether a phase that was entered for this reason is a person's wish."""
    return any(step.reason == reason for step in _REQUESTS.values())


def is_restart(reason: str) -> bool:
    """Whether a job restarts for this reason since a person resumed or restarted it."""
    return any(reason == _REQUESTS[action].reason for action in _BEGIN_ANEW)


def pending_request(
    ours: JobPhase, reason: str, theirs: JobPhase, *, restarted: bool = False
) -> LifecycleAction | None:
    """What the leader is still to be asked for, since our phase, entered for this reason, is a wish and not news.

    `restarted`: it counts more restarts than we know of, so that it has begun the job anew since the wish.
    """
    if _is_over(ours):
        return LifecycleAction.TERMINATE_JOB if theirs in _GOING_ON else None
    requested = next(
        (action for action, step in _REQUESTS.items() if (step.phase, step.reason) == (ours, reason)), None
    )
    if requested is None or (restarted and requested in _BEGIN_ANEW):
        return None
    before = {LifecycleAction.RESUME_JOB: _HALTED, LifecycleAction.RESTART_JOB: _PLACED}.get(requested, _GOING_ON)
    return requested if theirs in before else None


def follows(ours: JobPhase, reason: str, theirs: JobPhase, *, restarted: bool = False) -> bool:
    """Whether our phase becomes theirs: unless a wish is still due, or the job is over here.

    A restart that nobody saw is told though the job is back where it was. `restarted`: as for `due`.
    """
    has_moved = ours is not theirs or (restarted and ours in _PLACED)
    return has_moved and not _is_over(ours) and pending_request(ours, reason, theirs, restarted=restarted) is None


def _is_over(phase: JobPhase) -> bool:
    """For good: an aborted job may go on."""
    return phase.is_final and phase is not JobPhase.ABORTED


def phases_between(job: JobFacts, theirs: JobPhase, *, has_started: bool, restarts: int) -> list[JobPhase]:
    """The phases from ours to theirs, also those that were over before anybody looked.

    `has_begun`: our record knows that its pods ran; `restarts`: how many its leader counts.
    """
    passed = []
    if restarts > job.retry_count and JobPhase.RESTARTING not in (job.phase, theirs):
        passed.append(JobPhase.RESTARTING)
    if theirs in (JobPhase.COMPLETED, JobPhase.FAILED) and not has_started:
        passed.append(JobPhase.RUNNING)
    return [*passed, theirs]
