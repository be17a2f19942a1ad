"""Jobs whose lifecycle Volcano's controller runs: what a user may request, and when its phases become ours.

A request only enters the phase that records it. Every other change follows what Volcano reports.
"""

from collections.abc import Sequence

from hekla.domain.errors import Refused
from hekla.domain.lifecycle.facts import AttemptIndex, JobFacts, PodFacts, Slot
from hekla.domain.lifecycle.messages import FactMessage, fact
from hekla.domain.lifecycle.stimuli import Stimulus, resolve
from hekla.domain.lifecycle.transitions import TRANSITIONS, ImpossibleTransition, JobOutcome, PhaseChange
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction, LifecycleEvent
from hekla.domain.task_spec import SuccessPolicy
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
_RESTARTS = frozenset({LifecycleAction.RESUME_JOB, LifecycleAction.RESTART_JOB})
_PLACED = frozenset({JobPhase.PENDING, JobPhase.RUNNING})
_ACTIVE = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING})
_HALTED = frozenset({JobPhase.ABORTING, JobPhase.ABORTED})


def request(job: JobFacts, action: LifecycleAction) -> JobOutcome:
    """Record a user's request. Raises Refused for what Volcano cannot do, ImpossibleTransition as usual."""
    if action not in _REQUESTS:
        raise Refused(translate("Volcano schedules this job and can restart only the whole job. Restart the job."))
    if (job.phase, action) not in TRANSITIONS:
        raise ImpossibleTransition(job.phase, action)
    step = _REQUESTS[action]
    if action in _RESTARTS and job.phase is not step.phase:
        _require_retry_left(job)
    is_there = job.phase is step.phase or (job.phase is JobPhase.ABORTED and action is LifecycleAction.ABORT_JOB)
    return outcome_of(job, () if is_there else (step,))


def refusal(job: JobFacts, action: LifecycleAction) -> str:
    """Why the request is not possible; empty if it is."""
    try:
        request(job, action)
    except Refused as refused:
        return str(refused)
    return ""


def is_complete(job: JobFacts, pods: Sequence[PodFacts]) -> bool:
    """Whether the first replica of a task (`SuccessPolicy`) completed the job. Volcano counts all replicas."""
    if job.phase not in _PLACED:
        return False
    roster = AttemptIndex(job.spec, pods)
    for task in job.spec.tasks:
        first = roster.current(Slot(task.name, 0), job.version)
        if task.success_policy is SuccessPolicy.FIRST_REPLICA and first and first.phase is PodPhase.SUCCEEDED:
            stimulus = Stimulus(LifecycleEvent.TASK_COMPLETED, task=task.name, index=0)
            if resolve(job, stimulus) is LifecycleAction.COMPLETE_JOB:
                return True
    return False


def _require_retry_left(job: JobFacts) -> None:
    """Volcano counts requested restarts as retries, and fails the job at the last one. Raises Refused."""
    if job.retry_count + 1 >= job.spec.max_retry:
        raise Refused(
            translate(
                "Volcano counts manual restarts too. At number {most} (max_retry) the job fails, and this "
                "would be it. Clone the job to run it again.",
                most=job.spec.max_retry,
            )
        )


def outcome_of(job: JobFacts, steps: tuple[PhaseChange, ...] = ()) -> JobOutcome:
    """The job after these phase changes; without them, as it is."""
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
    """Whether this reason of a phase records a user's request."""
    return any(step.reason == reason for step in _REQUESTS.values())


def is_restart(reason: str) -> bool:
    """Whether this reason records a requested restart or resumption."""
    return any(reason == _REQUESTS[action].reason for action in _RESTARTS)


def pending_request(
    ours: JobPhase, reason: str, theirs: JobPhase, *, restarted: bool = False
) -> LifecycleAction | None:
    """The request that Volcano has not carried out yet, by our phase and its reason, and Volcano's phase.

    `restarted`: Volcano counts more restarts than we have recorded, so it has restarted the job since.
    """
    if _is_over(ours):
        return LifecycleAction.TERMINATE_JOB if theirs in _ACTIVE else None
    requested = next(
        (action for action, step in _REQUESTS.items() if (step.phase, step.reason) == (ours, reason)), None
    )
    if requested is None or (restarted and requested in _RESTARTS):
        return None
    before = {LifecycleAction.RESUME_JOB: _HALTED, LifecycleAction.RESTART_JOB: _PLACED}.get(requested, _ACTIVE)
    return requested if theirs in before else None


def follows(ours: JobPhase, reason: str, theirs: JobPhase, *, restarted: bool = False) -> bool:
    """Whether our phase becomes Volcano's: not while a request is pending, and not once the job has ended here.

    A missed restart is recorded even if the phase is the same again. `restarted`: as for `pending_request`.
    """
    has_changed = ours is not theirs or (restarted and ours in _PLACED)
    return has_changed and not _is_over(ours) and pending_request(ours, reason, theirs, restarted=restarted) is None


def _is_over(phase: JobPhase) -> bool:
    """Final for good; an aborted job may be resumed."""
    return phase.is_final and phase is not JobPhase.ABORTED


def phases_between(job: JobFacts, theirs: JobPhase, *, has_started: bool, restarts: int) -> list[JobPhase]:
    """The phases from ours to theirs, including those that passed unobserved.

    `has_started`: we recorded that its pods ran. `restarts`: how many Volcano counts.
    """
    passed = []
    if restarts > job.retry_count and JobPhase.RESTARTING not in (job.phase, theirs):
        passed.append(JobPhase.RESTARTING)
    if theirs in (JobPhase.COMPLETED, JobPhase.FAILED) and not has_started:
        passed.append(JobPhase.RUNNING)
    return [*passed, theirs]
