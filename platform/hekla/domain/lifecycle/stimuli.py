"""From events to the actions of policies."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hekla.domain.lifecycle.facts import ActionTarget, AttemptIndex, JobFacts, PodFacts, Slot
from hekla.domain.lifecycle.transitions import TRANSITIONS
from hekla.domain.phases import PodPhase
from hekla.domain.policies import INTERNAL_EVENTS, PARTIAL_ACTIONS, LifecycleAction, LifecycleEvent, LifecyclePolicy
from hekla.domain.task_spec import SuccessPolicy, TaskSpec


@dataclass(frozen=True, slots=True)
class Stimulus:
    """An event (about a pod if `task` is set) or a user's command that may lead to an action."""

    event: LifecycleEvent = LifecycleEvent.OUT_OF_SYNC
    command: LifecycleAction | None = None
    task: str = ""
    index: int | None = None
    version: int | None = None
    exit_code: int | None = None

    @property
    def target(self) -> ActionTarget | None:
        """The pod or task concerned, for `advance`."""
        return ActionTarget(self.task, self.index) if self.task else None


def stimuli_of(job: JobFacts, pods: Sequence[PodFacts], changed: Iterable[PodFacts]) -> list[Stimulus]:
    """One stimulus for each pod in `changed`, which just entered its phase; `pods` are all of the job's.

    The caller resolves them in order. After an action other than SYNC_JOB it calls this again with fresh facts for the
    rest, since a restart stops pods whose news then mean nothing. SYNC_JOB is done once, at the end.
    """
    roster = AttemptIndex(job.spec, pods)
    done = _done(job, roster)
    return [_stimulus(job, roster, done, pod) for pod in changed]


def resized(job: JobFacts, task: str) -> Stimulus | None:
    """The stimulus of a task that was scaled; None if no policy reacts. A partial action applies to the whole task."""
    policy = _first_match(job, task, LifecycleEvent.JOB_UPDATED, None)
    if policy is None or policy.timeout_seconds or not _is_possible(job, policy.action, task):
        return None
    action = LifecycleAction.RESTART_TASK if policy.action in PARTIAL_ACTIONS else policy.action
    return Stimulus(event=LifecycleEvent.JOB_UPDATED, command=action, task=task)


def resolve(job: JobFacts, stimulus: Stimulus) -> LifecycleAction:
    """The action: a command as it is, else that of the first matching policy, else SYNC_JOB.

    Events from before the last full restart and actions that the phase does not allow give SYNC_JOB. Policies with a
    timeout are left to `overdue`.
    """
    if stimulus.command is not None:
        return stimulus.command
    if stimulus.event in INTERNAL_EVENTS or (stimulus.version or job.version) < job.version:
        return LifecycleAction.SYNC_JOB
    policy = _first_match(job, stimulus.task, stimulus.event, stimulus.exit_code)
    if policy is None or policy.timeout_seconds or not _is_possible(job, policy.action, stimulus.task):
        return LifecycleAction.SYNC_JOB
    return policy.action


def overdue(job: JobFacts, pods: Sequence[PodFacts], now: datetime) -> tuple[LifecycleAction, ActionTarget] | None:
    """An action whose policy timeout has passed while its cause persists, and the replica concerned."""
    if not job.spec.has_timeouts:
        return None
    roster = AttemptIndex(job.spec, pods)
    done = _done(job, roster)
    for slot in roster.slots():
        for pod in _unanswered(job, roster, slot):
            stimulus = _stimulus(job, roster, done, pod)
            policy, since = _waiting_policy(job, stimulus), _since(job, roster, stimulus, pod)
            if policy and since and now - since >= timedelta(seconds=policy.timeout_seconds or 0):
                return policy.action, ActionTarget(slot.task, slot.index)
    return None


def _unanswered(job: JobFacts, roster: AttemptIndex, slot: Slot) -> Sequence[PodFacts]:
    """The attempts of a replica since an action last stopped one; empty once it runs again."""
    attempts = [pod for pod in roster.attempts(slot) if pod.version == job.version]
    answered = [place for place, pod in enumerate(attempts, start=1) if pod.stopping and not pod.evicted]
    recent = attempts[max(answered, default=0) :]
    if not recent or recent[-1].phase is PodPhase.RUNNING:
        return ()
    return recent[-1:] if recent[-1].phase is PodPhase.SUCCEEDED else recent


def _waiting_policy(job: JobFacts, stimulus: Stimulus) -> LifecyclePolicy | None:
    """The matching policy with a timeout, if any."""
    if stimulus.event in INTERNAL_EVENTS:
        return None
    policy = _first_match(job, stimulus.task, stimulus.event, stimulus.exit_code)
    return policy if policy and policy.timeout_seconds and _is_possible(job, policy.action, stimulus.task) else None


def _since(job: JobFacts, roster: AttemptIndex, stimulus: Stimulus, pod: PodFacts) -> datetime | None:
    """When the stimulus began; a task completes with the last of its required pods."""
    if stimulus.event is not LifecycleEvent.TASK_COMPLETED:
        return pod.since
    pods = (roster.current(slot, job.version) for slot in _required(job.spec.task(pod.task)))
    return max((other.since for other in pods if other and other.since), default=None)


def _is_possible(job: JobFacts, action: LifecycleAction, task: str) -> bool:
    """Whether the job's phase allows the action, and the part of the job is given if one is needed."""
    return (job.phase, action) in TRANSITIONS and (bool(task) or action not in PARTIAL_ACTIONS)


def _first_match(job: JobFacts, task: str, event: LifecycleEvent, exit_code: int | None) -> LifecyclePolicy | None:
    """The first matching policy: those of the pod's task come before those of the job."""
    rules = [policy for spec in job.spec.tasks if spec.name == task for policy in spec.policies]
    return next((policy for policy in (*rules, *job.spec.policies) if policy.matches(event, exit_code)), None)


def _state_event(pod: PodFacts) -> LifecycleEvent | None:
    """The event of the pod's own state."""
    if pod.stopping:
        return LifecycleEvent.POD_EVICTED if pod.evicted and pod.phase.is_final else None
    return _EVENTS.get(pod.phase)


def _stimulus(job: JobFacts, roster: AttemptIndex, done: set[Slot], pod: PodFacts) -> Stimulus:
    event = (roster.wants(pod.task, pod.index) and _state_event(pod)) or LifecycleEvent.OUT_OF_SYNC
    if pod.phase is PodPhase.SUCCEEDED and not pod.stopping and pod.slot in done:
        event = LifecycleEvent.TASK_COMPLETED
    if pod.phase is PodPhase.LOST and not pod.stopping and not roster.replaces_losses(pod.slot, job.version):
        event = LifecycleEvent.TASK_FAILED
    code = pod.exit_code if event is LifecycleEvent.POD_FAILED else None
    return Stimulus(event=event, task=pod.task, index=pod.index, version=pod.version, exit_code=code)


def _done(job: JobFacts, roster: AttemptIndex) -> set[Slot]:
    """The replicas whose success completed their task."""
    required = [_required(task) for task in job.spec.tasks]
    return {slot for slots in required if _have_succeeded(job, roster, slots) for slot in slots}


def _have_succeeded(job: JobFacts, roster: AttemptIndex, slots: Iterable[Slot]) -> bool:
    pods = (roster.current(slot, job.version) for slot in slots)
    return all(pod is not None and pod.phase is PodPhase.SUCCEEDED for pod in pods)


def _required(task: TaskSpec) -> list[Slot]:
    """The replicas that must succeed for the task to complete."""
    is_first_enough = task.success_policy is SuccessPolicy.FIRST_REPLICA
    return [Slot(task.name, index) for index in range(min(task.replicas, 1) if is_first_enough else task.replicas)]


_EVENTS = {
    PodPhase.PENDING: LifecycleEvent.POD_PENDING,
    PodPhase.BOUND: LifecycleEvent.POD_PENDING,
    PodPhase.PREPARING: LifecycleEvent.POD_PENDING,
    PodPhase.RUNNING: LifecycleEvent.POD_RUNNING,
    PodPhase.FAILED: LifecycleEvent.POD_FAILED,
    PodPhase.LOST: LifecycleEvent.POD_EVICTED,
}
