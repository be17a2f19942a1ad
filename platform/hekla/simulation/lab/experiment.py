"""One experiment of the lab: what was, the unchanged policy, and the change, side by side.

The run of the unchanged policy is the measure of all others: its difference from what happened is the error to expect.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from hekla.simulation.lab import capacity, results
from hekla.simulation.lab.capacity import CapacityTrial
from hekla.simulation.lab.change import CapacityGoal, LabChange, NewNodes, changed, has_extenders, read_policy
from hekla.simulation.lab.results import LabFigures, LabSummary, Trust
from hekla.simulation.lab.simulated_run import Progress, RunOutcome, run, step_of
from hekla.simulation.lab.workload import Workload, WorkloadNote, with_estimates

FORMAT = 1


class LabColumn(StrEnum):
    """The columns of a comparison: what happened, and the two runs."""

    RECORDED = "recorded"
    UNCHANGED = "unchanged"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Experiment:
    """A workload, the text of the policy in force, and what changes."""

    workload: Workload
    policy: str
    change: LabChange


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """The figures of a run, and a digest of its binds. `trust`: against what was recorded. `trials`, `needed`: of a
    capacity goal (`capacity`).
    """

    summary: LabSummary
    trust: Trust | None
    digest: str
    binds: int
    cycles: int
    trials: tuple[CapacityTrial, ...] = ()
    needed: int | None = None


def columns(experiment: Experiment) -> tuple[LabColumn, ...]:
    """The runs of an experiment: without a change, one."""
    return (LabColumn.UNCHANGED,) if experiment.change.is_empty else (LabColumn.UNCHANGED, LabColumn.CHANGED)


def finish(experiment: Experiment, column: LabColumn, progress: Progress | None = None) -> FinishedRun:
    """Make one run of an experiment, or several for a capacity goal.

    Raises Invalid for its policy or change, RunBroken, and what `progress` raises.
    """
    goal = experiment.change.goal
    if column is LabColumn.CHANGED and goal is not None:
        return _planned(experiment, goal, progress or (lambda _part: None))
    return _finish(experiment, column, progress)


def _planned(experiment: Experiment, goal: CapacityGoal, progress: Progress) -> FinishedRun:
    """The run with as many more nodes as the goal takes."""

    def run_with(count: int, report: Progress) -> tuple[LabFigures, FinishedRun]:
        more = (NewNodes(goal.like, count),) if count else ()
        change = replace(experiment.change, nodes=(*experiment.change.nodes, *more))
        made = _finish(replace(experiment, change=change), LabColumn.CHANGED, report)
        return made.summary.total, made

    found = capacity.plan(goal, run_with, progress)
    return replace(found.run, trials=found.trials, needed=found.count)


def _finish(experiment: Experiment, column: LabColumn, progress: Progress | None) -> FinishedRun:
    workload = with_estimates(experiment.workload)
    is_changed = column is LabColumn.CHANGED
    cluster = changed(workload, experiment.change) if is_changed else workload
    text = cluster.policies[0].text if cluster.policies else experiment.policy
    if is_changed and experiment.change.policy:
        text, cluster = experiment.change.policy, replace(cluster, policies=())
    outcome = run(cluster, read_policy(text), progress)
    return FinishedRun(
        results.summary(cluster, outcome.histories, outcome.ends),
        None if is_changed else results.trust(workload, outcome.histories),
        outcome.digest,
        _count(outcome),
        outcome.cycles,
    )


def report(experiment: Experiment, runs: Mapping[LabColumn, FinishedRun]) -> dict[str, Any]:
    """The result as JSON."""
    workload = with_estimates(experiment.workload)
    notes = dict(workload.notes)
    if has_extenders(experiment.change.policy or experiment.policy):
        notes[WorkloadNote.NO_EXTENDERS] = 1
    summaries: dict[LabColumn, LabSummary] = {}
    if any(job.history.started is not None for job in workload.jobs):
        histories = {job.uid: job.history for job in workload.jobs}
        summaries[LabColumn.RECORDED] = results.summary(workload, histories, workload.ends)
    summaries |= {name: one.summary for name, one in runs.items()}
    found = runs[LabColumn.UNCHANGED].trust
    return {
        "format": FORMAT,
        "period": [workload.starts, workload.ends],
        "step": step_of(workload),
        "jobs": sum(1 for _ in workload.counted()),
        "unit": "gpu" if results.counts_cards(workload) else "cpu",
        "columns": {str(name): asdict(one) for name, one in summaries.items()},
        "trust": asdict(found) if found else None,
        "runs": {
            str(name): {"digest": one.digest, "binds": one.binds, "cycles": one.cycles} for name, one in runs.items()
        },
        "notes": {str(name): count for name, count in notes.items()},
        "plan": _plan(experiment.change.goal, runs.get(LabColumn.CHANGED)),
    }


def _plan(goal: CapacityGoal | None, run: FinishedRun | None) -> dict[str, Any] | None:
    if goal is None or run is None:
        return None
    return {**asdict(goal), "count": run.needed, "trials": [asdict(one) for one in run.trials]}


def _count(outcome: RunOutcome) -> int:
    return sum(len(history.binds) for history in outcome.histories.values())
