"""Jobs as runs that are compared: the parameters that differ, the metrics, and the best run by one of them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hekla.apps.job_metrics.selectors import Figures
from hekla.apps.jobs.models import Job
from hekla.domain.phases import JobPhase

GOALS = ("min", "max")
VALUES = ("last", "min", "max")
MOST_NAMES = 200
"""The metrics that are compared: each job may print others."""
_LOWER_IS_BETTER = re.compile(
    r"loss|err|mae|mse|perplexity|latency|time|seconds|duration|distance|(?<![a-z])(ppl|wer|cer|fid)(?![a-z])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Run:
    """A job with the figures of its metrics. `number`: its place among the runs; `attempt`: of a job of a batch."""

    job: Job
    metrics: Mapping[str, Figures]
    parameters: Mapping[str, str]
    number: int
    attempt: int = 1

    @property
    def is_completed(self) -> bool:
        """Whether its job completed: the value of another may come from a broken or unfinished run."""
        return self.job.phase == JobPhase.COMPLETED

    def value(self, metric: str, which: str) -> float | None:
        """The last, lowest or highest value of a metric; None if the job has printed none."""
        found = self.metrics.get(metric)
        return None if found is None else found[which]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of runs. `goal`: the lowest or the highest is best; `value`: which value of each run counts."""

    metric: str
    goal: str
    value: str

    def key(self, run: Run) -> tuple[bool, float, int]:
        """A sort key: the best run first, runs without the metric last."""
        found = run.value(self.metric, self.value)
        if found is None:
            return True, 0.0, run.number
        return False, found if self.goal == "min" else -found, run.number


def metric_names(runs: Sequence[Run]) -> list[str]:
    """The metrics of all runs, at most 200: first those that most of them have."""
    counts = Counter(name for run in runs for name in run.metrics)
    return sorted(counts, key=lambda name: (-counts[name], name))[:MOST_NAMES]


def varying_parameters(runs: Sequence[Run]) -> list[str]:
    """The parameters with different values, in the order of the sweep; all of them if there is a single run."""
    names = dict.fromkeys(name for run in runs for name in run.parameters)
    if len(runs) < 2:  # noqa: PLR2004
        return list(names)
    return [name for name in names if len({run.parameters.get(name) for run in runs}) > 1]


def ranking(runs: Sequence[Run], *, metric: str = "", goal: str = "", value: str = "") -> Ranking | None:
    """The ranking that these words choose, with defaults for unknown ones; None if no run has a metric.

    By default the metric that most runs have; the lowest is best for names such as `loss`, else the highest.
    """
    names = metric_names(runs)
    if not names:
        return None
    chosen = metric if metric in names else names[0]
    usual = "min" if _LOWER_IS_BETTER.search(chosen) else "max"
    return Ranking(chosen, goal if goal in GOALS else usual, value if value in VALUES else "last")


def best_run(runs: Sequence[Run], order: Ranking | None) -> Run | None:
    """The completed run with the best value; None if no completed run has one."""
    found = [run for run in runs if order and order.metric in run.metrics and run.is_completed]
    return min(found, key=order.key) if order and found else None


def describe(run: Run, names: Sequence[str]) -> str:
    """The parameters of a run as one line: `lr=0.1 width=64`."""
    return " ".join(f"{name}={run.parameters[name]}" for name in names if name in run.parameters)
