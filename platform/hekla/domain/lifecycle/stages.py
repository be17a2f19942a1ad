"""Dependencies between the tasks of a job, and the size of the gang while some tasks are held back.

A task that is held back is no part of the gang. Otherwise the first tasks would wait for the others to be placed, and
these for the first ones to run.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle.facts import AttemptIndex, JobFacts, PodFacts, Slot
from hekla.domain.phases import PodPhase
from hekla.domain.task_spec import Iteration, TaskSpec


@dataclass(frozen=True, slots=True)
class GangStage:
    """The progress of a job with dependencies.

    `held`: the replicas that are held back. `waits`: their tasks, each with the tasks that it waits for. `minimum`: the
    gang's size now; `minimums`: its share of each task.
    """

    held: frozenset[Slot]
    waits: Mapping[str, tuple[str, ...]]
    minimum: int
    minimums: Mapping[str, int]


def stage_of(job: JobFacts, pods: Sequence[PodFacts]) -> GangStage:
    """The stage of a job, from all its recorded attempts."""
    if not job.spec.has_dependencies:
        return _whole(job.spec)
    roster = AttemptIndex(job.spec, pods)
    found = ((slot, roster.current(slot, job.version)) for slot in roster.slots())
    return stage(roster, {slot: pod for slot, pod in found if pod})


def stage(roster: AttemptIndex, current: Mapping[Slot, PodFacts]) -> GangStage:
    """As `stage_of`, with the current attempts."""
    spec = roster.spec
    waits = _unmet(spec, current.values()) if spec.has_dependencies else {}
    if not waits:
        return _whole(spec)
    held = frozenset(slot for slot in roster.slots() if slot.task in waits and _is_open(roster, current, slot))
    if not held:
        return _whole(spec)
    missing = Counter(slot.task for slot in held)
    minimums = {task.name: min(task.minimum, task.replicas - missing[task.name]) for task in spec.tasks}
    waiting = {name: others for name, others in waits.items() if missing[name]}
    return GangStage(held, waiting, min(spec.gang_minimum, sum(minimums.values())), minimums)


def _whole(spec: JobSpec) -> GangStage:
    """Nothing is held back."""
    return GangStage(frozenset(), {}, spec.gang_minimum, {task.name: task.minimum for task in spec.tasks})


def _is_open(roster: AttemptIndex, current: Mapping[Slot, PodFacts], slot: Slot) -> bool:
    return slot not in current and not any(pod.is_alive for pod in roster.attempts(slot))


def _unmet(spec: JobSpec, current: Iterable[PodFacts]) -> dict[str, tuple[str, ...]]:
    """Tasks whose pods may not be created yet, and the tasks that they wait for."""
    at_work = Counter(pod.task for pod in current if pod.phase in (PodPhase.RUNNING, PodPhase.SUCCEEDED))
    missing = {task.name for task in spec.tasks if at_work[task.name] < task.minimum}
    found = ((task.name, _waits_for(task, missing)) for task in spec.tasks)
    return {name: others for name, others in found if others}


def _waits_for(task: TaskSpec, missing: set[str]) -> tuple[str, ...]:
    if task.depends_on is None:
        return ()
    unmet = tuple(name for name in task.depends_on.tasks if name in missing)
    one_is_enough = task.depends_on.iteration is Iteration.ANY
    return () if one_is_enough and len(unmet) < len(task.depends_on.tasks) else unmet
