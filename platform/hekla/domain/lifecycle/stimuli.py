"""From what happened to what is to be done: the reading of policies."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hekla.domain.lifecycle.facts import JobFacts, PodFacts, Roster, Target
from hekla.domain.lifecycle.transitions import TRANSITIONS
from hekla.domain.phases import PodPhase
from hekla.domain.policies import INTERNAL_EVENTS, PARTIAL_ACTIONS, Action, Event, Policy


@dataclass(frozen=True, slots=True)
class Stimulus:
    """Something that may call for an action: an event (about a pod, where `task` is named) or a person's command."""

    event: Event = Event.OUT_OF_SYNC
    command: Action | None = None
    task: str = ""
    index: int | None = None
    version: int | None = None
    exit_code: int | None = None

    @property
    def target(self) -> Target | None:
        """The pod or task that this is about, for `advance`."""
        return Target(self.task, self.index) if self.task else None


def stimulus_of(job: JobFacts, pods: Sequence[PodFacts], pod: PodFacts) -> Stimulus:
    """What it means that `pod` has just come into its phase; `pods` are all of the job's, this one included."""
    event = _event_of(job, pods, pod)
    code = pod.exit_code if event is Event.POD_FAILED else None
    return Stimulus(event=event, task=pod.task, index=pod.index, version=pod.version, exit_code=code)


def resolve(job: JobFacts, stimulus: Stimulus) -> Action:
    """What is to be done: a command as it is, else what the first matching policy says, else to look (SYNC_JOB).

    News of a pod from before the last full restart, and actions that the job's phase does not know, come to nothing. A
    policy with a timeout is left to `overdue`.
    """
    if stimulus.command is not None:
        return stimulus.command
    if stimulus.event in INTERNAL_EVENTS or (stimulus.version or job.version) < job.version:
        return Action.SYNC_JOB
    policy = _first_match(job, stimulus.task, stimulus.event, stimulus.exit_code)
    if policy is None or policy.timeout_seconds or not _is_possible(job, policy.action, stimulus.task):
        return Action.SYNC_JOB
    return policy.action


def overdue(job: JobFacts, pods: Sequence[PodFacts], now: datetime) -> tuple[Action, Target] | None:
    """An action whose policy waited for its timeout, and the replica it is about, where it is still so by now."""
    roster = Roster(job.spec, pods)
    for _, slot in roster.slots():
        attempts = [pod for pod in roster.attempts(slot) if pod.version == job.version]
        if not attempts or attempts[-1].phase in (PodPhase.RUNNING, PodPhase.SUCCEEDED):
            continue
        for pod in attempts:
            policy = _waiting_policy(job, pod)
            if policy and pod.since and now - pod.since >= timedelta(seconds=policy.timeout_seconds or 0):
                return policy.action, Target(slot.task, slot.index)
    return None


def _waiting_policy(job: JobFacts, pod: PodFacts) -> Policy | None:
    """The policy with a timeout, if any, that this pod's present state has set running."""
    event = _state_event(pod)
    policy = event and _first_match(job, pod.task, event, pod.exit_code if event is Event.POD_FAILED else None)
    return policy if policy and policy.timeout_seconds and _is_possible(job, policy.action, pod.task) else None


def _is_possible(job: JobFacts, action: Action, task: str) -> bool:
    """Whether the job's phase knows the action, and it is clear which part of the job is meant."""
    return (job.phase, action) in TRANSITIONS and (bool(task) or action not in PARTIAL_ACTIONS)


def _first_match(job: JobFacts, task: str, event: Event, exit_code: int | None) -> Policy | None:
    """The rules of the pod's task come before those of the job."""
    rules = [policy for spec in job.spec.tasks if spec.name == task for policy in spec.policies]
    return next((policy for policy in (*rules, *job.spec.policies) if policy.matches(event, exit_code)), None)


def _state_event(pod: PodFacts) -> Event | None:
    """The event that the pod's state alone tells of."""
    if pod.stopping:
        return Event.POD_EVICTED if pod.evicted and pod.phase.is_final else None
    return _EVENTS.get(pod.phase)


def _event_of(job: JobFacts, pods: Sequence[PodFacts], pod: PodFacts) -> Event:
    event = _state_event(pod) or Event.OUT_OF_SYNC
    task = next((task for task in job.spec.tasks if task.name == pod.task), None)
    if task is None or pod.stopping:
        return event
    roster = Roster(job.spec, pods)
    if pod.phase is PodPhase.LOST and not roster.replaces_losses(task, pod.slot, job.version):
        return Event.TASK_FAILED
    if pod.phase is PodPhase.SUCCEEDED:
        counting = (roster.current(task, slot, job.version) for each, slot in roster.slots() if each is task)
        done = all(other is not None and other.phase is PodPhase.SUCCEEDED for other in counting)
        return Event.TASK_COMPLETED if done else Event.OUT_OF_SYNC
    return event


_EVENTS = {
    PodPhase.PENDING: Event.POD_PENDING,
    PodPhase.BOUND: Event.POD_PENDING,
    PodPhase.PREPARING: Event.POD_PENDING,
    PodPhase.RUNNING: Event.POD_RUNNING,
    PodPhase.FAILED: Event.POD_FAILED,
    PodPhase.LOST: Event.POD_EVICTED,
}
