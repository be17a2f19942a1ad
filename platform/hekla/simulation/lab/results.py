"""What a run did to queues, tenants and the cluster, in numbers that can be compared.

Waiting times are those of the jobs submitted within the period; one that did not start counts until the end of the run,
unless somebody removed it. Use and used hours are those within the period.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hekla.domain.card_resources import is_card
from hekla.engine.model import NodeSpec
from hekla.simulation.lab.differences import Differences, differences, nodes_of
from hekla.simulation.lab.workload import HOUR, SECOND, History, RecordedBind, Workload, WorkloadJob, WorkloadNote

MAX_GROUPS = 200
"""Queues or tenants of a result: those with the most jobs."""
POINTS = 160
"""Of each line over time."""
_SHORT = 60 * SECOND
"""Slowdown is not computed of shorter run times: it would be that of tests of a second."""
Histories = Mapping[str, History]
Unit = Callable[[Mapping[str, float]], float]
Times = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class LabFigures:
    """Figures of some jobs. Waits in seconds, None without a job; `used_hours`: of cards, or of CPUs without any.

    `slowdown`: the mean of (wait + run time) / run time. `is_capped`: a job still waits, so its wait is a lower bound.
    """

    jobs: int = 0
    started: int = 0
    finished: int = 0
    evictions: int = 0
    wait_p50: float | None = None
    wait_p90: float | None = None
    wait_mean: float | None = None
    used_hours: float = 0.0
    slowdown: float | None = None
    is_capped: bool = False


@dataclass(frozen=True, slots=True)
class LabSummary:
    """The figures of a run. `fairness`: Jain's index of the tenants' slowdowns, 1 if all are alike.

    `makespan`: hours from the first submission to the last end. `use`: the part of the capacity that was held.
    `points`: by line, its values over the period.
    """

    total: LabFigures
    queues: Mapping[str, LabFigures]
    tenants: Mapping[str, LabFigures]
    use: float
    fairness: float | None
    makespan: float
    points: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Trust:
    """How a run of the unchanged policy differs from what happened.

    `binds` were recorded, `equal_binds` of them are on the same node in the run. `starts`: jobs that started in both;
    `error_p50`, `error_p90`: of their waits, in seconds. `differing`: the jobs with other binds.
    """

    binds: int
    equal_binds: int
    starts: int
    error_p50: float | None
    error_p90: float | None
    differing: Differences


def summary(workload: Workload, histories: Histories, until: int) -> LabSummary:
    """The figures of a run that ended at `until`, or of what was recorded until then."""
    jobs, unit = [*workload.counted()], _unit(workload)
    every = [_JobFigures(job, histories[job.uid], until, workload.ends, unit) for job in jobs]
    tenants = _by(every, lambda one: one.job.tenant)
    ends = [one.history.finished for one in every if one.history.finished is not None]
    first = min((job.submitted for job in jobs), default=workload.starts)
    held = _held(workload, histories, until, unit)
    capacity = Integral(_capacity(workload, unit))
    edges = np.linspace(workload.starts, workload.ends, POINTS + 1)
    whole = capacity.between(workload.starts, workload.ends)
    return LabSummary(
        total=_figures(every),
        queues=_by(every, lambda one: one.job.group.queue),
        tenants=tenants,
        use=held.between(workload.starts, workload.ends) / whole if whole else 0.0,
        fairness=_jain([one.slowdown for one in tenants.values() if one.slowdown is not None]),
        makespan=(max(ends) - first) / HOUR if ends else 0.0,
        points={
            "use": _ratios(held.steps(edges), capacity.steps(edges)),
            "waiting": _means(Integral(_waits(workload, histories, until)).steps(edges), edges),
        },
    )


def trust(workload: Workload, histories: Histories) -> Trust | None:
    """How these histories differ from the recorded ones; None if nothing was recorded."""
    binds = equal = starts = 0
    errors: list[float] = []
    for job in workload.counted():
        recorded, found = job.history, histories[job.uid]
        nodes = nodes_of(found)
        for pod, before in nodes_of(recorded).items():
            binds += len(before)
            equal += sum(old == new for old, new in zip(before, nodes.get(pod, ()), strict=False))
        if recorded.started is not None and found.started is not None:
            starts += 1
            errors.append(abs(found.started - recorded.started) / SECOND)
    if not binds and not starts:
        return None
    lacks_nodes = WorkloadNote.NODES_NOW in workload.notes
    differing = differences(workload, histories, lacks_nodes=lacks_nodes)
    return Trust(binds, equal, starts, _quantile(errors, 0.5), _quantile(errors, 0.9), differing)


def as_recorded(workload: Workload, histories: Histories) -> Workload:
    """The workload as if a run had been recorded: with its binds, and run times as they came out."""
    return replace(workload, jobs=tuple(_recorded(job, histories[job.uid]) for job in workload.jobs))


def _recorded(job: WorkloadJob, history: History) -> WorkloadJob:
    runs: list[dict[int, int | None]] = [{} for _pod in job.group.pods]
    for one in history.binds:  # the last bind of an attempt is the one that was not evicted
        runs[one.pod][one.attempt] = None if one.until is None else one.until - one.at
    times = tuple(
        tuple(found.get(at, run) for at, run in enumerate(before)) for found, before in zip(runs, job.runs, strict=True)
    )
    return replace(job, runs=times, history=history)


class _JobFigures:
    """A job of a run, with its figures in milliseconds. `wait` None: it was removed before it started."""

    def __init__(self, job: WorkloadJob, history: History, until: int, ends: int, unit: Unit) -> None:
        self.job, self.history, started = job, history, history.started
        self.is_capped = started is None and job.leaves is None
        has_wait = started is not None or self.is_capped
        self.wait = max(0, (until if started is None else started) - job.submitted) if has_wait else None
        self.used = sum(
            unit(job.group.pods[one.pod].request) * max(0, min(ends, _end(one, until)) - one.at)
            for one in history.binds
        )
        ran = None if started is None else (history.finished or until) - started
        self.slowdown = None if ran is None or self.wait is None else (self.wait + ran) / max(ran, _SHORT)


def _figures(some: Sequence[_JobFigures]) -> LabFigures:
    waits = [one.wait / SECOND for one in some if one.wait is not None]
    slowdowns = [max(1.0, one.slowdown) for one in some if one.slowdown is not None]
    return LabFigures(
        jobs=len(some),
        started=sum(one.history.started is not None for one in some),
        finished=sum(one.history.finished is not None for one in some),
        evictions=sum(one.history.evictions for one in some),
        wait_p50=_quantile(waits, 0.5),
        wait_p90=_quantile(waits, 0.9),
        wait_mean=float(np.mean(waits)) if waits else None,
        used_hours=sum(one.used for one in some) / HOUR,
        slowdown=float(np.mean(slowdowns)) if slowdowns else None,
        is_capped=any(one.is_capped for one in some),
    )


def _by(some: Iterable[_JobFigures], key: Callable[[_JobFigures], str]) -> dict[str, LabFigures]:
    groups: dict[str, list[_JobFigures]] = defaultdict(list)
    for one in some:
        groups[key(one)].append(one)
    most = sorted(groups, key=lambda name: (-len(groups[name]), name))[:MAX_GROUPS]
    return {name: _figures(groups[name]) for name in sorted(most)}


def _quantile(values: Sequence[float], part: float) -> float | None:
    return float(np.quantile(values, part)) if values else None


def _jain(values: Sequence[float]) -> float | None:
    """Jain's index: 1 if all values are equal, 1/n if one has everything."""
    squares = sum(one * one for one in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else None


# Over time.

Step = tuple[float, float]
"""A time, and by how much an amount changes then."""


class Integral:
    """An amount that changes in steps, to be integrated over time."""

    def __init__(self, steps: Iterable[Step]) -> None:
        found = np.array(sorted(steps), dtype=float).reshape(-1, 2)
        self._times, changes = found[:, 0], found[:, 1]
        self._amounts = np.concatenate(([0.0], np.cumsum(changes)))
        self._moments = np.concatenate(([0.0], np.cumsum(changes * self._times)))

    def at(self, times: Times) -> Times:
        """The integral up to these times."""
        places = np.searchsorted(self._times, times, side="left")
        return np.asarray(self._amounts[places] * times - self._moments[places])

    def between(self, start: float, end: float) -> float:
        """The integral from one time to another."""
        first, last = self.at(np.array([start, end], dtype=float))
        return float(last - first)

    def steps(self, edges: Times) -> Times:
        """The integrals between neighbouring times."""
        return np.diff(self.at(edges))


def _unit(workload: Workload) -> Unit:
    """What use is counted in: cards if any node has some, else CPUs."""
    if counts_cards(workload):
        return lambda amounts: sum(amount for name, amount in amounts.items() if is_card(name)) / 1000
    return lambda amounts: amounts.get("cpu", 0.0) / 1000


def counts_cards(workload: Workload) -> bool:
    """Whether use is counted in cards; else in CPUs."""
    later = [one.node for one in workload.changes if one.node is not None]
    return any(is_card(name) for node in (*workload.state.nodes, *later) for name in node.allocatable)


def _held(workload: Workload, histories: Histories, until: int, unit: Unit) -> Integral:
    steps: list[Step] = []
    for job in workload.jobs:
        for one in histories[job.uid].binds:
            amount = unit(job.group.pods[one.pod].request)
            if amount:
                steps += ((one.at, amount), (_end(one, until), -amount))
    return Integral(steps)


def _end(bind: RecordedBind, until: int) -> int:
    return max(bind.at, until if bind.until is None else bind.until)


def _waits(workload: Workload, histories: Histories, until: int) -> Iterable[Step]:
    for job in workload.jobs:
        started = histories[job.uid].started
        end = job.leaves if started is None and job.leaves is not None else started
        if not job.placed:
            yield job.submitted, 1.0
            yield max(job.submitted, until if end is None else end), -1.0


def _capacity(workload: Workload, unit: Unit) -> Iterable[Step]:
    present = {node.name: _usable(node, unit) for node in workload.state.nodes}
    yield workload.starts, sum(present.values())
    for change in workload.changes:
        now = 0.0 if change.node is None else _usable(change.node, unit)
        yield change.at, now - present.get(change.name, 0.0)
        present[change.name] = now


def _usable(node: NodeSpec, unit: Unit) -> float:
    return unit(node.allocatable) if node.is_ready else 0.0


Series = tuple[float, ...]


def _ratios(part: Times, whole: Times) -> Series:
    return tuple(round(float(one / all_), 4) if all_ else 0.0 for one, all_ in zip(part, whole, strict=True))


def _means(areas: Times, edges: Times) -> Series:
    return tuple(round(float(one), 2) for one in areas / np.maximum(np.diff(edges), 1.0))
