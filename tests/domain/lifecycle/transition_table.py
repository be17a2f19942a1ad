"""The table of transitions as Markdown. Each cell shows the result of applying the action to a sample job."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle.facts import ActionTarget, JobFacts, PodFacts, PodRef
from hekla.domain.lifecycle.transitions import TRANSITIONS, JobOutcome, advance
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction

_TASK = {"command": ["true"]}
_SPEC = JobSpec.parse(
    {"name": "job", "tasks": [{"name": "a", "replicas": 4, "partition_size": 2, **_TASK}, {"name": "b", **_TASK}]}
)
_DONE, _BAD, _BUSY, _MORE = (PodRef("a", index, 1) for index in range(4))
_OTHER = PodRef("b", 0, 1)
_PHASES = {
    _DONE: PodPhase.SUCCEEDED,
    _BAD: PodPhase.FAILED,
    _BUSY: PodPhase.RUNNING,
    _MORE: PodPhase.RUNNING,
    _OTHER: PodPhase.RUNNING,
}
_REMAINING = {
    frozenset(): "keeps nothing",
    frozenset({_OTHER}): "keeps other tasks",
    frozenset({_BUSY, _MORE, _OTHER}): "keeps other partitions",
    frozenset({_DONE, _BUSY, _MORE, _OTHER}): "keeps other pods",
    frozenset({_DONE, _BAD}): "keeps what has ended",
    frozenset({_DONE}): "keeps what succeeded",
    frozenset(_PHASES): "keeps all",
}
_ACTIONS = tuple(action for action in LifecycleAction if any(known is action for _, known in TRANSITIONS))


def markdown() -> str:
    """A row for each phase, a column for each action. The target of partial actions is a failed pod.

    Each cell: the new phase, the pods that still count, and whether it is a retry. A dash: the action only checks the
    pods. Empty: the phase does not support the action.
    """
    actions = [action for action in _ACTIONS if action is not LifecycleAction.SYNC_JOB]
    rows = [["", *actions], ["---"] * (len(actions) + 1)]
    rows += [[f"**{phase}**", *(_cell(phase, action) for action in actions)] for phase in JobPhase]
    return "\n".join(map(_row, rows))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(phase: JobPhase, action: LifecycleAction) -> str:
    move = TRANSITIONS.get((phase, action))
    if move is None:
        return ""
    if move is TRANSITIONS[phase, LifecycleAction.SYNC_JOB]:
        return "–"
    job, pods = _sample(phase)
    outcome = advance(job, pods, action, ActionTarget(_BAD.task, _BAD.index), now=datetime(2026, 1, 1, tzinfo=UTC))
    return _describe(phase, job, pods, outcome)


def _sample(phase: JobPhase) -> tuple[JobFacts, list[PodFacts]]:
    """A job in this phase with one succeeded, one failed and three live pods; in a final phase these were stopped."""
    job = JobFacts(_SPEC, phase, GangPhase.RUNNING)
    pods = [PodFacts(ref.task, ref.index, ref.attempt, 1, at) for ref, at in _PHASES.items()]
    if phase.is_final:
        pods = [replace(pod, phase=PodPhase.FAILED, stopping=True) if pod.is_alive else pod for pod in pods]
    return job, pods


def _describe(before: JobPhase, job: JobFacts, pods: list[PodFacts], outcome: JobOutcome) -> str:
    counted = [pod.ref for pod in pods if pod.version == outcome.version and not pod.stopping]
    remaining = _REMAINING[frozenset(counted) - frozenset(outcome.stop)]
    entered = outcome.steps[0].phase if outcome.steps else before
    retry = ", a retry" if outcome.retry_count > job.retry_count else ""
    return f"{entered}; {remaining}{retry}"
