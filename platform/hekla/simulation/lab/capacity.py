"""Capacity planning: the smallest number of more nodes with which jobs wait no longer than people want.

A few runs find it, by halving: more nodes are taken to make no wait longer, which holds but for single jobs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2
from typing import Generic, TypeVar

from hekla.simulation.lab.change import CapacityGoal
from hekla.simulation.lab.results import LabFigures

Run = TypeVar("Run")


@dataclass(frozen=True, slots=True)
class CapacityTrial:
    """A run with so many more nodes: the wait of 90 % of the jobs in seconds. `is_capped`: some still wait."""

    count: int
    wait_p90: float | None
    is_capped: bool
    is_enough: bool


@dataclass(frozen=True, slots=True)
class CapacityPlan(Generic[Run]):
    """The runs in their order. `count`: the nodes that are needed; None: more than the most. `run`: that with `count`
    more nodes, else with the most.
    """

    trials: tuple[CapacityTrial, ...]
    count: int | None
    run: Run


def plan(
    goal: CapacityGoal,
    run_with: Callable[[int, Callable[[float], None]], tuple[LabFigures, Run]],
    progress: Callable[[float], None],
) -> CapacityPlan[Run]:
    """Run with other numbers of nodes until the smallest is known. Raises what `run_with` and `progress` raise."""
    trials, runs = dict[int, CapacityTrial](), dict[int, Run]()
    steps = 1 + ceil(log2(goal.most + 1))

    def is_enough(count: int) -> bool:
        done = len(trials)
        figures, runs[count] = run_with(count, lambda part: progress(min(1.0, (done + part) / steps)))
        wait = figures.wait_p90
        fits = not figures.is_capped and (wait is None or wait <= goal.wait_p90)
        trials[count] = CapacityTrial(count, wait, figures.is_capped, fits)
        return fits

    if not is_enough(goal.most):
        return CapacityPlan(tuple(trials.values()), None, runs[goal.most])
    low, high = 0, goal.most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return CapacityPlan(tuple(trials.values()), high, runs[high])
