"""Progress of a flow: from the state of its jobs to its phase, the steps to start, and what the others wait for.

Pure and level-triggered: equal facts give equal answers, and a step with a job is never started again.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from hekla.domain.flows import FlowSpec, Probe, StepSpec, TaskState
from hekla.domain.phases import FlowPhase, JobPhase


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The pods of a task: the minimum for a probe, and how many run or have succeeded."""

    minimum: int
    running: int = 0
    succeeded: int = 0


@dataclass(frozen=True, slots=True)
class StepFacts:
    """The state of a step's job. A job deleted before it completed counts as terminated."""

    phase: JobPhase
    tasks: Mapping[str, TaskFacts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PortProbe:
    """A probe of a step, by its index, of the job of one of its dependencies."""

    step: str
    probe: int
    target: str


@dataclass(frozen=True, slots=True)
class StepWait:
    """Why a step waits: the job of `target` has not completed (`phase` None: not started), or a probe fails."""

    target: str
    phase: JobPhase | None
    probe: Probe | None = None


@dataclass(frozen=True, slots=True)
class FlowProgress:
    """`due`: steps to start now, in the order of the flow. `is_over`: nothing more will happen."""

    phase: FlowPhase
    due: tuple[str, ...]
    waits: Mapping[str, tuple[StepWait, ...]]
    is_over: bool


def evaluate_flow(
    spec: FlowSpec, jobs: Mapping[str, StepFacts], answered: Collection[PortProbe] = (), *, is_stopped: bool = False
) -> FlowProgress:
    """The progress of a flow. `jobs`: by step, if it has one. `answered`: port probes that succeeded."""
    phase = _phase(spec, jobs, is_stopped)
    if phase not in (FlowPhase.PENDING, FlowPhase.RUNNING):
        return FlowProgress(phase, (), {}, all(job.phase.is_final for job in jobs.values()))
    waits = {step.name: tuple(_waits(step, jobs, answered)) for step in spec.steps if step.name not in jobs}
    due = tuple(name for name, reasons in waits.items() if not reasons)
    return FlowProgress(phase, due, {name: reasons for name, reasons in waits.items() if reasons}, is_over=False)


def port_probes(spec: FlowSpec, jobs: Mapping[str, StepFacts]) -> list[PortProbe]:
    """The ports to probe now: of running jobs, for steps that wait for nothing else."""
    return [
        PortProbe(step.name, place, target)
        for step in spec.steps
        if step.name not in jobs and _only_ports_are_missing(step, jobs)
        for target in spec.waits[step.name]
        if jobs[target].phase is JobPhase.RUNNING
        for place, probe in enumerate(step.probes)
        if probe.port is not None
    ]


def _only_ports_are_missing(step: StepSpec, jobs: Mapping[str, StepFacts]) -> bool:
    reasons = list(_waits(step, jobs, ()))
    return bool(reasons) and all(wait.probe is not None and wait.probe.port is not None for wait in reasons)


def _phase(spec: FlowSpec, jobs: Mapping[str, StepFacts], is_stopped: bool) -> FlowPhase:
    phases = [job.phase for job in jobs.values()]
    if len(phases) == len(spec.steps) and all(phase is JobPhase.COMPLETED for phase in phases):
        return FlowPhase.SUCCEEDED
    if JobPhase.FAILED in phases:
        return FlowPhase.FAILED
    if is_stopped:
        return FlowPhase.TERMINATED
    if JobPhase.TERMINATED in phases:
        return FlowPhase.FAILED
    return FlowPhase.RUNNING if any(phase is not JobPhase.PENDING for phase in phases) else FlowPhase.PENDING


def _waits(step: StepSpec, jobs: Mapping[str, StepFacts], answered: Collection[PortProbe]) -> Iterable[StepWait]:
    """Why a step cannot start. A completed job passes its probes, since no pod is left to probe."""
    for target in dict.fromkeys(step.depends_on):
        job = jobs.get(target)
        if job is None or (not step.probes and job.phase is not JobPhase.COMPLETED):
            yield StepWait(target, job.phase if job else None)
        elif job.phase is not JobPhase.COMPLETED:
            for place, probe in enumerate(step.probes):
                if not (_in_state(probe, job) or PortProbe(step.name, place, target) in answered):
                    yield StepWait(target, job.phase, probe)


def _in_state(probe: Probe, job: StepFacts) -> bool:
    if probe.state is None:
        return False
    tasks = [facts for name, facts in job.tasks.items() if probe.task in ("", name)]
    return bool(tasks) and all(_is(probe.state, task) for task in tasks)


def _is(state: TaskState, task: TaskFacts) -> bool:
    at_work = task.running if state is TaskState.RUNNING else 0
    return at_work + task.succeeded >= task.minimum
