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
    Action.RESTART_JOB: Step(JobPhase.RESTARTING, "RestartRequested", Said(fact("restart_asked"))),
}
_BEGIN_ANEW = frozenset({Action.RESUME_JOB, Action.RESTART_JOB})
_PLACED = frozenset({JobPhase.PENDING, JobPhase.RUNNING})
_GOING_ON = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING})
_HALTED = frozenset({JobPhase.ABORTING, JobPhase.ABORTED})


def wish(job: JobFacts, action: Action) -> Outcome:
    """What a person asks for. Raises Refused for what cannot be asked of the leader, ImpossibleTransition as usual."""
    if action not in _WISHES:
        raise Refused(said("Volcano leads this job, and can be asked to restart it as a whole only. Restart the job."))
    if (job.phase, action) not in TRANSITIONS:
        raise ImpossibleTransition(job.phase, action)
    step = _WISHES[action]
    if action in _BEGIN_ANEW and job.phase is not step.phase:
        _require_a_restart_left(job)
    is_so = job.phase is step.phase or (job.phase is JobPhase.ABORTED and action is Action.ABORT_JOB)
    return standing(job, () if is_so else (step,))


def refusal(job: JobFacts, action: Action) -> str:
    """Why a person may not wish for that; empty where they may."""
    try:
        wish(job, action)
    except Refused as refused:
        return str(refused)
    return ""


def _require_a_restart_left(job: JobFacts) -> None:
    """Volcano counts beginnings that people ask for like its own, and lets the job fail at the last. Raises Refused."""
    if job.retry_count + 1 >= job.spec.max_retry:
        raise Refused(
            said(
                "Volcano counts restarts that people ask for too, and at number {most} (max_retry) the job fails; this "
                "would be it. Clone the job to run it again.",
                most=job.spec.max_retry,
            )
        )


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


def is_beginning(reason: str) -> bool:
    """Whether a job restarts for this reason since a person resumed or restarted it."""
    return any(reason == _WISHES[action].reason for action in _BEGIN_ANEW)


def due(ours: JobPhase, reason: str, theirs: JobPhase, *, restarted: bool = False) -> Action | None:
    """What the leader is still to be asked for, since our phase, entered for this reason, is a wish and not news.

    `restarted`: it counts more restarts than we know of, so that it has begun the job anew since the wish.
    """
    if _is_over(ours):
        return Action.TERMINATE_JOB if theirs in _GOING_ON else None
    wished = next((action for action, step in _WISHES.items() if (step.phase, step.reason) == (ours, reason)), None)
    if wished is None or (restarted and wished in _BEGIN_ANEW):
        return None
    before = {Action.RESUME_JOB: _HALTED, Action.RESTART_JOB: _PLACED}.get(wished, _GOING_ON)
    return wished if theirs in before else None


def follows(ours: JobPhase, reason: str, theirs: JobPhase, *, restarted: bool = False) -> bool:
    """Whether our phase becomes theirs: unless a wish is still due, or the job is over here.

    A restart that nobody saw is told though the job is back where it was. `restarted`: as for `due`.
    """
    has_moved = ours is not theirs or (restarted and ours in _PLACED)
    return has_moved and not _is_over(ours) and due(ours, reason, theirs, restarted=restarted) is None


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
