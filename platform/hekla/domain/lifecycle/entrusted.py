"""Jobs that somebody else leads, by the same phases as ours: what a person's wish means there.

A wish only enters the phase that says so. All else of such a job follows what its leader says of it.
"""

from hekla.domain.errors import Refused
from hekla.domain.lifecycle.facts import JobFacts
from hekla.domain.lifecycle.saying import Said, fact
from hekla.domain.lifecycle.transitions import TRANSITIONS, ImpossibleTransition, Outcome, Step
from hekla.domain.phases import JobPhase
from hekla.domain.policies import Action
from hekla.domain.sentences import said

_WISHES = {
    Action.ABORT_JOB: Step(JobPhase.ABORTING, "AbortRequested", Said()),
    Action.COMPLETE_JOB: Step(JobPhase.COMPLETING, "CompleteRequested", Said()),
    Action.TERMINATE_JOB: Step(JobPhase.TERMINATING, "TerminateRequested", Said()),
    Action.RESUME_JOB: Step(JobPhase.RESTARTING, "Resumed", Said(fact("resumed"))),
}
_GOING_ON = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING})
_HALTED = frozenset({JobPhase.ABORTING, JobPhase.ABORTED})


def wish(job: JobFacts, action: Action) -> Outcome:
    """What a person asks for. Raises Refused for what cannot be asked of the leader, ImpossibleTransition as usual."""
    if action not in _WISHES:
        raise Refused(said("Volcano leads this job, and it cannot be asked for that. Abort the job and resume it."))
    if (job.phase, action) not in TRANSITIONS:
        raise ImpossibleTransition(job.phase, action)
    step = _WISHES[action]
    is_so = job.phase is step.phase or (job.phase is JobPhase.ABORTED and action is Action.ABORT_JOB)
    return standing(job, () if is_so else (step,))


def standing(job: JobFacts, steps: tuple[Step, ...] = ()) -> Outcome:
    """The job as it is, after these steps."""
    last = steps[-1] if steps else Step(job.phase, "", "")
    return Outcome(
        phase=last.phase,
        gang_phase=job.gang_phase,
        version=job.version,
        retry_count=job.retry_count,
        reason=last.reason,
        message=last.message,
        steps=steps,
    )


def is_wish(reason: str) -> bool:
    """Whether a phase that was entered for this reason is a person's wish."""
    return any(step.reason == reason for step in _WISHES.values())


def is_resumption(reason: str) -> bool:
    """Whether a job restarts for this reason since a person resumed it."""
    return reason == _WISHES[Action.RESUME_JOB].reason


def due(ours: JobPhase, reason: str, theirs: JobPhase) -> Action | None:
    """What the leader is still to be asked for, since our phase, entered for this reason, is a wish and not news."""
    if _is_over(ours):
        return Action.TERMINATE_JOB if theirs in _GOING_ON else None
    wished = next((action for action, step in _WISHES.items() if (step.phase, step.reason) == (ours, reason)), None)
    is_open = theirs in (_HALTED if wished is Action.RESUME_JOB else _GOING_ON)
    return wished if is_open else None


def follows(ours: JobPhase, reason: str, theirs: JobPhase) -> bool:
    """Whether our phase becomes theirs: unless a wish is still due, or the job is over here."""
    return ours is not theirs and not _is_over(ours) and due(ours, reason, theirs) is None


def _is_over(phase: JobPhase) -> bool:
    """For good: an aborted job may go on."""
    return phase.is_final and phase is not JobPhase.ABORTED


def way(job: JobFacts, theirs: JobPhase, *, has_begun: bool, restarts: int) -> list[JobPhase]:
    """The phases from ours to theirs, also those that were over before anybody looked.

    `has_begun`: our record knows that its pods ran; `restarts`: how many its leader counts.
    """
    passed = []
    if restarts > job.retry_count and JobPhase.RESTARTING not in (job.phase, theirs):
        passed.append(JobPhase.RESTARTING)
    if theirs in (JobPhase.COMPLETED, JobPhase.FAILED) and not has_begun:
        passed.append(JobPhase.RUNNING)
    return [*passed, theirs]
