"""The state machine of a job: a table of phase x action, and the moves in its cells.

A move changes a `_Transition`. Then the SYNC_JOB move of the new phase runs, until the phase no longer changes.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from hekla.domain.errors import Refused
from hekla.domain.lifecycle import backoff
from hekla.domain.lifecycle.facts import ActionTarget, AttemptIndex, JobFacts, PodFacts, PodRef, Slot
from hekla.domain.lifecycle.messages import Fact, FactMessage, fact
from hekla.domain.lifecycle.stages import GangStage, stage
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.task_spec import TaskSpec
from hekla.domain.translation import translate


class PhaseChange(NamedTuple):
    """A phase that was entered, and why. The message is usually a `FactMessage`."""

    phase: JobPhase
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The new state of a job, and what to do.

    `steps`: the phases that were entered, in order; empty if the phase is the same. `reason`, `message`: of the job's
    state, also if its phase did not change. `stop`: pods to mark as stopping, and to end if they are alive; `surplus`:
    those of them whose replicas a scale-down removed. `create`: new attempts, to be written with the job's new
    `version`. `restart_at`: when a restart that waits begins. A final job may still have pods in `stop` that hold their
    resources until they have ended.
    """

    phase: JobPhase
    gang_phase: GangPhase
    version: int
    retry_count: int
    restart_at: datetime | None = None
    reason: str = ""
    message: str = ""
    steps: tuple[PhaseChange, ...] = ()
    stop: tuple[PodRef, ...] = ()
    surplus: frozenset[PodRef] = frozenset()
    create: tuple[PodRef, ...] = ()


class ImpossibleTransition(Refused):
    """The job's phase does not support this action."""

    code = "impossible_transition"

    def __init__(self, phase: JobPhase, action: LifecycleAction) -> None:
        known = [
            other
            for (other, known_action), move in TRANSITIONS.items()
            if known_action is action and move is not TRANSITIONS[other, LifecycleAction.SYNC_JOB]
        ]
        super().__init__(_impossible(phase, action, known))


def _impossible(phase: JobPhase, action: LifecycleAction, known: Sequence[JobPhase]) -> str:
    if not known:
        return translate("The job is {phase}. {action} is not possible.", phase=_word(phase), action=action)
    return translate(
        "The job is {phase}. {action} is possible only when it is {phases}.",
        phase=_word(phase),
        action=action,
        phases=translate(" or ").join(map(_word, known)),
    )


def _word(phase: JobPhase) -> str:
    """The phase as on pages, in lower case for use within a sentence."""
    return translate(phase.capitalize()).lower()


def advance(
    job: JobFacts,
    pods: Sequence[PodFacts],
    action: LifecycleAction,
    target: ActionTarget | None = None,
    *,
    by_person: bool = False,
    now: datetime,
) -> JobOutcome:
    """Apply `action`, then whatever follows from the facts at this time. `pods`: all recorded attempts.

    `target`: the part for RestartTask, RestartPod and RestartPartition. `by_person`: a restart is a person's request,
    not a retry. Raises ImpossibleTransition if the phase does not support the action.
    """
    transition = _Transition(job, AttemptIndex(job.spec, pods), target, now, counted=not by_person)
    move = TRANSITIONS.get((job.phase, action))
    if move is None:
        raise ImpossibleTransition(job.phase, action)
    transition.drop_surplus()
    if action is not LifecycleAction.SYNC_JOB:
        move(transition)
    while True:
        before = transition.phase
        TRANSITIONS[before, LifecycleAction.SYNC_JOB](transition)
        if transition.phase is before:
            return transition.outcome()


def expire(job: JobFacts, pods: Sequence[PodFacts], now: datetime) -> JobOutcome:
    """Fail a job after its deadline, in any phase, and stop its live pods."""
    transition = _Transition(job, AttemptIndex(job.spec, pods), None, now, counted=False)
    message = FactMessage(fact("out_of_time", seconds=job.spec.active_deadline_seconds or 0))
    _finish(transition, JobPhase.FAILED, "DeadlineExceeded", message)
    return transition.outcome()


@dataclass
class _Tally:
    """The number of replicas in each state; `failed_pods` and `succeeded_by_task` are for messages and rules by task.

    `stage`: the replicas that wait for another task, and the gang's size while they wait.
    """

    stage: GangStage
    running: int = 0
    succeeded: int = 0
    ending: int = 0
    pending: int = 0
    failed_pods: list[PodFacts] = field(default_factory=list)
    succeeded_by_task: dict[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        return len(self.failed_pods)

    @property
    def unfinished(self) -> int:
        """Replicas whose result is still open."""
        return self.running + self.ending + self.pending


class _Transition:
    """A job on its way from one phase to the next."""

    def __init__(
        self, job: JobFacts, roster: AttemptIndex, target: ActionTarget | None, now: datetime, *, counted: bool
    ) -> None:
        self.spec, self.roster, self.target, self.counted = job.spec, roster, target, counted
        self.now, self.restart_backoff = now, job.restart_backoff
        self.restart_at = job.restart_at if counted else None  # a person's request does not wait
        self.phase, self.gang_phase = job.phase, job.gang_phase
        self.version, self.retry_count = job.version, job.retry_count
        self.steps: list[PhaseChange] = []
        self.note = ("", "")
        self.stopped: set[PodRef] = set()
        self.surplus: frozenset[PodRef] = frozenset()

    def enter(self, phase: JobPhase, reason: str, message: str) -> None:
        self.phase = phase
        if phase is not JobPhase.RESTARTING:
            self.restart_at = None
        self.steps.append(PhaseChange(phase, reason, message))
        self.note = (reason, message)

    def current(self) -> dict[Slot, PodFacts]:
        """The attempts that count now."""
        found = ((slot, self.roster.current(slot, self.version)) for slot in self.roster.slots())
        return {slot: pod for slot, pod in found if pod and not (self.stopped and pod.ref in self.stopped)}

    def alive(self) -> list[PodFacts]:
        return self.roster.alive()

    def stop(self, pods: Sequence[PodFacts]) -> None:
        self.stopped.update(pod.ref for pod in pods if not pod.stopping)

    def drop_surplus(self) -> None:
        """Stop counting the replicas that a scale-down removed, also those that have ended."""
        surplus = self.roster.surplus()
        self.stop(surplus)
        self.surplus = frozenset(pod.ref for pod in surplus if not pod.stopping)

    def tally(self) -> _Tally:
        current = self.current()
        tally = _Tally(stage(self.roster, current))
        for slot in self.roster.slots():
            pod = current.get(slot)
            if pod is None:
                tally.ending += any(other.is_alive for other in self.roster.attempts(slot))
            elif pod.phase is PodPhase.RUNNING:
                tally.running += 1
            elif pod.phase is PodPhase.SUCCEEDED:
                tally.succeeded += 1
                tally.succeeded_by_task[pod.task] = tally.succeeded_by_task.get(pod.task, 0) + 1
            elif pod.phase.is_final:
                tally.failed_pods.append(pod)
        there = tally.running + tally.succeeded + tally.failed + tally.ending
        tally.pending = self.spec.replicas - there - len(tally.stage.held)
        return tally

    def outcome(self) -> JobOutcome:
        reason, message = self.note
        return JobOutcome(
            phase=self.phase,
            gang_phase=self.gang_phase,
            version=self.version,
            retry_count=self.retry_count,
            restart_at=self.restart_at,
            reason=reason,
            message=message,
            steps=tuple(self.steps),
            stop=tuple(sorted(self.stopped)),
            surplus=self.surplus,
            create=tuple(self._missing()),
        )

    def _missing(self) -> list[PodRef]:
        """New attempts for replicas without one, once the gang is admitted; never while an older attempt is alive.

        Replicas that wait for another task get none yet.
        """
        if self.phase not in _WORKING or self.gang_phase is GangPhase.PENDING:
            return []
        current = self.current()
        held = stage(self.roster, current).held
        empty = [slot for slot in self.roster.slots() if slot not in current and slot not in held]
        free = [slot for slot in empty if not any(pod.is_alive for pod in self.roster.attempts(slot))]
        return [self.roster.next_attempt(slot) for slot in free]


RETRIED = "Restarting"
"""The reason of a job that restarts by policy, and of the pods that this stops."""
_WORKING = frozenset({JobPhase.PENDING, JobPhase.RUNNING})


# Moves for SYNC_JOB: what each phase does by itself.


def _start(transition: _Transition) -> None:
    """Pending: start when enough pods run or have ended."""
    tally = transition.tally()
    if tally.stage.minimum <= tally.running + tally.succeeded + tally.failed:
        message = FactMessage(fact("pods_run", running=tally.running, replicas=transition.spec.replicas))
        transition.enter(JobPhase.RUNNING, "GangStarted", message)


def _judge(transition: _Transition) -> None:
    """Running: whether the job has ended, and with which result. The rules of `volcano-spec` §2.3."""
    spec, tally = transition.spec, transition.tally()
    if not spec.replicas:
        return
    if spec.min_success is not None and tally.succeeded >= spec.min_success:
        message = FactMessage(fact("as_many_as_asked", succeeded=tally.succeeded))
        _finish(transition, JobPhase.COMPLETED, "MinSuccessReached", message)
    elif not tally.unfinished:
        _finish(transition, *_verdict(transition, tally))
    elif tally.pending > spec.replicas - len(tally.stage.held) - tally.stage.minimum:
        message = FactMessage(fact("too_few_at_work", pending=tally.pending, minimum=tally.stage.minimum))
        transition.enter(JobPhase.PENDING, "TooFewPods", message)
    elif tally.failed_pods:
        transition.note = ("PodFailed", FactMessage(_failed_fact(tally.failed_pods), fact("no_policy")))


def _verdict(transition: _Transition, tally: _Tally) -> tuple[JobPhase, str, str]:
    """The result of a job whose pods have all ended. A task that still waits for another will never start."""
    spec = transition.spec
    failures = [_failed_fact(tally.failed_pods)] if tally.failed_pods else []
    failures += _never_started(tally.stage)
    summary = [fact("pods_succeeded", succeeded=tally.succeeded, replicas=spec.replicas), *failures]
    if spec.gang_minimum >= sum(task.minimum for task in spec.tasks):
        for task in spec.tasks:
            done = tally.succeeded_by_task.get(task.name, 0)
            if task.min_available is not None and done < task.min_available:
                needed = fact("task_needed", task=task.name, needed=task.min_available, had=done)
                return JobPhase.FAILED, "TaskFailed", FactMessage(needed, *failures)
    if spec.min_success is not None:
        return (
            JobPhase.FAILED,
            "TooFewSuccesses",
            FactMessage(fact("successes_asked", asked=spec.min_success), *summary),
        )
    if tally.succeeded >= spec.gang_minimum:
        return JobPhase.COMPLETED, "PodsSucceeded", FactMessage(*summary)
    return JobPhase.FAILED, "PodsFailed", FactMessage(*summary)


def _never_started(stage: GangStage) -> list[Fact]:
    """“train never started: it waited for prepare.”"""
    return [fact("never_begun", task=name, others=", ".join(waits)) for name, waits in stage.waits.items()]


def _begin_again(transition: _Transition) -> None:
    """Restarting: return to pending when the delay has passed and enough of the old pods are gone."""
    if transition.restart_at and transition.now < transition.restart_at:
        return
    if transition.spec.replicas - transition.tally().ending >= transition.spec.gang_minimum:
        transition.enter(
            JobPhase.PENDING,
            transition.note[0] or "Restarted",
            transition.note[1] or FactMessage(fact("old_pods_gone")),
        )


def _ended(phase: JobPhase, message: str) -> "Move":
    """Aborting, completing, terminating: enter the next phase when all pods are gone."""

    def move(transition: _Transition) -> None:
        transition.stop(transition.alive())
        if not transition.alive():
            transition.enter(phase, transition.note[0] or str(phase).capitalize(), transition.note[1] or message)
            if phase is not JobPhase.ABORTED:
                transition.gang_phase = GangPhase.COMPLETED

    return move


def _rest(transition: _Transition) -> None:
    """Final: stop live pods; the phase stays."""
    transition.stop(transition.alive())


# Moves for the other actions.


def _restart(transition: _Transition) -> None:
    """Restart everything: a new version, and a new admission to the queue."""
    if _take_retry(transition):
        transition.stop(transition.alive())
        transition.version += 1
        transition.gang_phase = GangPhase.PENDING


def _restart_task(transition: _Transition) -> None:
    """Restart one task; the gang stays admitted."""
    _restart_part(transition, ActionTarget(transition.target.task) if transition.target else None)


def _restart_partition(transition: _Transition) -> None:
    """Restart the partition of a replica."""
    if transition.target is None or transition.target.index is None:
        _restart_part(transition, None)
        return
    task, index = transition.spec.task(transition.target.task), transition.target.index
    _restart_slots(transition, {Slot(task.name, other) for other in _neighbours(task, index)})


def _neighbours(task: TaskSpec, index: int) -> list[int]:
    """The replicas of a partition."""
    return [other for other in range(task.replicas) if task.partition(other) == task.partition(index)]


def _restart_pod(transition: _Transition) -> None:
    """Restart one replica."""
    _restart_part(transition, transition.target)


def _restart_part(transition: _Transition, part: ActionTarget | None) -> None:
    if part is None:
        raise Refused(translate("Name the part of the job to restart."))
    _restart_slots(transition, {slot for slot in transition.roster.slots() if _is_in(slot, part)})


def _restart_slots(transition: _Transition, slots: AbstractSet[Slot]) -> None:
    """Restart these replicas. While the job restarts anyway, another part is not counted again."""
    chosen = [pod for slot, pod in transition.current().items() if slot in slots]
    if transition.phase is JobPhase.RESTARTING or _take_retry(transition):
        transition.stop(chosen)


def _take_retry(transition: _Transition) -> bool:
    """Count a restart and enter Restarting, or fail the job if no retries are left. Returns whether it restarts."""
    limit = transition.spec.max_retry
    if not transition.counted:
        transition.enter(JobPhase.RESTARTING, "RestartRequested", FactMessage(fact("restart_asked")))
        return True
    if transition.retry_count >= limit:
        message = FactMessage(*_cause(transition), fact("restarted_often", times=limit))
        _finish(transition, JobPhase.FAILED, "RetriesExhausted", message)
        return False
    transition.retry_count += 1
    counted = fact("restart_counted", count=transition.retry_count, limit=limit)
    message = FactMessage(*_cause(transition), counted, *_delay(transition))
    transition.enter(JobPhase.RESTARTING, RETRIED, message)
    return True


def _delay(transition: _Transition) -> list[Fact]:
    """Delay the restart if the pod that caused it failed before. Returns what there is to say about it."""
    slots = [slot for slot in transition.roster.slots() if not transition.target or _is_in(slot, transition.target)]
    failures = max((backoff.failures_in_a_row(transition.roster.attempts(slot)) for slot in slots), default=0)
    delay = backoff.delay(failures, transition.restart_backoff)
    if not delay:
        return []
    transition.restart_at = transition.now + delay
    return [fact("restart_delayed", failures=failures, seconds=round(delay.total_seconds()))]


def _resume(transition: _Transition) -> None:
    """Resume an aborted job; succeeded pods are kept."""
    unfinished = [pod for pod in transition.current().values() if pod.phase is not PodPhase.SUCCEEDED]
    transition.stop(unfinished)
    transition.gang_phase = GangPhase.PENDING
    transition.enter(JobPhase.RESTARTING, "Resumed", FactMessage(fact("resumed")))


def _end(phase: JobPhase, reason: str) -> "Move":
    """Stop live pods, keep ended ones, and enter a phase that leads to a final one."""

    def move(transition: _Transition) -> None:
        message = FactMessage(*_cause(transition))
        transition.stop(transition.alive())
        transition.gang_phase = GangPhase.PENDING
        transition.enter(phase, reason, message)

    return move


def _finish(transition: _Transition, phase: JobPhase, reason: str, message: str) -> None:
    transition.enter(phase, reason, message)
    transition.gang_phase = GangPhase.COMPLETED
    transition.stop(transition.alive())


def _is_in(slot: Slot, target: ActionTarget) -> bool:
    return slot.task == target.task and target.index in (None, slot.index)


def _cause(transition: _Transition) -> list[Fact]:
    """The failed or lost pod that caused an action, even if it is replaced; empty if there is none."""
    if transition.target is None:
        return []
    slots = [slot for slot in transition.roster.slots() if _is_in(slot, transition.target)]
    pods = [attempts[-1] for slot in slots if (attempts := transition.roster.attempts(slot))]
    here = [pod for pod in pods if pod.version == transition.version and not pod.stopping]
    guilty = [pod for pod in here if pod.phase in (PodPhase.FAILED, PodPhase.LOST)]
    return [_failed_fact(guilty)] if guilty else []


def _failed_fact(failed: Sequence[PodFacts]) -> Fact:
    """“worker-1 failed with exit code 1, and 3 other pods failed too.”"""
    first, is_lost = failed[0], failed[0].phase is PodPhase.LOST
    return fact("pod_failed", pod=str(first.slot), exit_code=first.exit_code, lost=is_lost, others=len(failed) - 1)


Move = Callable[[_Transition], None]


def _table() -> Mapping[tuple[JobPhase, LifecycleAction], Move]:
    """Rows: phases. Columns: actions. A gap: the phase does not support the action."""
    phase = JobPhase
    task, pod, part = _restart_task, _restart_pod, _restart_partition
    abort = _end(phase.ABORTING, "AbortRequested")
    finish = _end(phase.COMPLETING, "CompleteRequested")
    kill = _end(phase.TERMINATING, "TerminateRequested")
    is_aborted = _ended(phase.ABORTED, FactMessage(fact("can_be_resumed")))
    is_finished = _ended(phase.COMPLETED, FactMessage(fact("all_stopped")))
    is_killed = _ended(phase.TERMINATED, FactMessage(fact("all_stopped")))
    again, rest, gap = _begin_again, _rest, None
    do = LifecycleAction
    columns = (
        do.SYNC_JOB, do.RESTART_JOB, do.RESTART_TASK, do.RESTART_POD, do.RESTART_PARTITION,
        do.ABORT_JOB, do.COMPLETE_JOB, do.TERMINATE_JOB, do.RESUME_JOB,
    )  # fmt: skip
    rows: dict[JobPhase, tuple[Move | None, ...]] = {
        #                   Sync         Restart   …Task  …Pod  …Part Abort       Complete     Terminate  Resume
        phase.PENDING:     (_start,      _restart, task,  pod,  part, abort,      finish,      kill,      gap),
        phase.RUNNING:     (_judge,      _restart, task,  pod,  part, abort,      finish,      kill,      gap),
        phase.RESTARTING:  (again,       again,    task,  pod,  part, abort,      finish,      kill,      again),
        phase.ABORTING:    (is_aborted,  gap,      gap,   gap,  gap,  is_aborted, gap,         gap,       _resume),
        phase.ABORTED:     (rest,        gap,      gap,   gap,  gap,  rest,       gap,         gap,       _resume),
        phase.COMPLETING:  (is_finished, gap,      gap,   gap,  gap,  gap,        is_finished, gap,       gap),
        phase.COMPLETED:   (rest,        gap,      gap,   gap,  gap,  gap,        rest,        gap,       gap),
        phase.TERMINATING: (is_killed,   gap,      gap,   gap,  gap,  gap,        gap,         is_killed, gap),
        phase.TERMINATED:  (rest,        gap,      gap,   gap,  gap,  gap,        gap,         rest,      gap),
        phase.FAILED:      (rest,        gap,      gap,   gap,  gap,  gap,        gap,         gap,       gap),
    }  # fmt: skip
    return {
        (row, column): move for row, moves in rows.items() for column, move in zip(columns, moves, strict=True) if move
    }


TRANSITIONS = _table()
