"""The table of runs: what differs between jobs beside the metrics that they print. Batches and comparisons show it.

The query string holds the filters, the order, the ranking and the charts.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import QueryDict

from hekla.apps.job_metrics.ranking import Ranking, Run, best_run, metric_names, ranking, varying_parameters
from hekla.domain.phases import JobPhase
from hekla.lib import clock
from hekla.pages.runs import charts
from hekla.pages.runs.run_rows import run_rows

PAGE = 100
MOST_METRICS = 8
"""The columns of metrics; files and REST have up to `ranking.MOST_NAMES`."""
MOST_PARAMETERS = 40
_ORDER = [phase.value for phase in JobPhase]


@dataclass(frozen=True, slots=True)
class RunColumn:
    """A column of the table, of a parameter or a metric. `field`: its sort parameter."""

    label: str
    field: str
    is_metric: bool = False


@dataclass(frozen=True, slots=True)
class RunTable:
    """The runs that the query string selects, in its order, with the ranking that it chooses. `runs`: all of them."""

    runs: Sequence[Run]
    found: Sequence[Run]
    parameters: Sequence[str]
    metrics: Sequence[str]
    order: Ranking | None
    best: Run | None
    sort: str

    @property
    def value(self) -> str:
        """Which value of a metric the columns show."""
        return self.order.value if self.order else "last"


def table(runs: Sequence[Run], query: QueryDict) -> RunTable:
    """All these runs, and those that the filters select, sorted."""
    order = ranking(runs, metric=query.get("metric", ""), goal=query.get("goal", ""), value=query.get("value", ""))
    phases, text, sort = query.getlist("phase"), query.get("q", "")[:100], query.get("sort", "")
    found = [run for run in runs if _fits(run, phases, text)]
    names, chosen = metric_names(runs), [order.metric] if order else []
    metrics = [*chosen, *(name for name in names if name not in chosen)]
    which = order.value if order else "last"
    return RunTable(
        runs, _sorted(found, sort, which), varying_parameters(runs), metrics, order, best_run(runs, order), sort
    )


def context(runs: RunTable, query: QueryDict) -> dict[str, Any]:
    """What the templates `runs/` show of the table, its ranking and its charts."""
    page, metrics = _page(query, len(runs.found)), runs.metrics[:MOST_METRICS]
    return {
        "size": len(runs.runs),
        "columns": [
            *(RunColumn(name, f"p.{name}") for name in runs.parameters[:MOST_PARAMETERS]),
            *(RunColumn(name, f"m.{name}", is_metric=True) for name in metrics),
        ],
        "members": run_rows(_row(run, runs, metrics) for run in runs.found[(page - 1) * PAGE : page * PAGE]),
        "found": len(runs.found),
        "previous": _address(query, page - 1) if page > 1 else "",
        "next": _address(query, page + 1) if page * PAGE < len(runs.found) else "",
        "sort": runs.sort,
        "q": query.get("q", "")[:100],
        "words": query,
        "query": query.urlencode(),
        "order": runs.order,
        **(_ranking(runs, runs.order, query) if runs.order else {}),
    }


def _ranking(runs: RunTable, order: Ranking, query: QueryDict) -> dict[str, Any]:
    """The choice of the ranking, the best run, and the charts."""
    return {
        "goal": query.get("goal", ""),
        "metrics": runs.metrics,
        "unlisted_metrics": max(0, len(runs.metrics) - MOST_METRICS),
        "best": _row(runs.best, runs, [order.metric]) if runs.best else None,
        **charts.context(runs.found, order, runs.parameters, query),
    }


def _fits(run: Run, phases: Sequence[str], text: str) -> bool:
    """Whether the phase is selected, and the name or a parameter value contains the text."""
    words = [run.job.name, *(f"{name}={value}" for name, value in run.parameters.items())]
    return (not phases or run.job.phase in phases) and any(text.lower() in word.lower() for word in words)


def _sorted(runs: Sequence[Run], sort: str, value: str) -> list[Run]:
    """The runs by number, name, phase, end, run time, a parameter (`p.lr`) or a metric (`m.loss`).

    Numeric values of parameters sort before words. Runs without the value are last in both directions.
    """
    field, key = sort.removeprefix("-"), _key(sort.removeprefix("-"), value)
    with_key = [(found, run) for run in runs if (found := key(run)) is not None]
    with_key.sort(key=lambda pair: pair[0] if field in {"", "number"} else (pair[0], pair[1].number))
    if sort[:1] == "-":
        with_key.reverse()
    return [*(run for _found, run in with_key), *(run for run in runs if key(run) is None)]


def _key(field: str, value: str) -> Callable[[Run], Any]:
    """The sort key of a run for this field; None if the run has no such value."""
    if field.startswith("p."):
        return lambda run: _size(run.parameters.get(field[2:], ""))
    if field.startswith("m."):
        return lambda run: run.value(field[2:], value)
    now = clock.now()
    keys: dict[str, Callable[[Run], Any]] = {
        "name": lambda run: run.job.name,
        "phase": lambda run: _ORDER.index(run.job.phase),
        "ended": lambda run: run.job.finished_at,
        "took": lambda run: run_seconds(run, now),
    }
    return keys.get(field, lambda run: run.number)


def run_seconds(run: Run, now: datetime) -> float | None:
    """How long the job has run, in seconds; None before its start."""
    job = run.job
    return ((job.finished_at or now) - job.started_at).total_seconds() if job.started_at else None


def _size(value: str) -> tuple[int, float, str]:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    return (1, 0.0, value) if math.isnan(number) else (0, number, "")


def _row(run: Run, runs: RunTable, metrics: Sequence[str]) -> Mapping[str, Any]:
    figures = {name: run.value(name, runs.value) for name in metrics}
    return {
        "run": run,
        "job": run.job,
        "values": [{"name": name, "value": run.parameters.get(name, "")} for name in runs.parameters[:MOST_PARAMETERS]],
        "metrics": [
            {"name": name, "value": "" if value is None else f"{value:.4g}", "exact": value}
            for name, value in figures.items()
        ],
        "is_best": run is runs.best,
    }


def _page(query: QueryDict, count: int) -> int:
    last = max(1, -(-count // PAGE))
    page = query.get("page", "")
    return min(max(1, int(page)), last) if page.isascii() and page.isdigit() and len(page) < 6 else 1  # noqa: PLR2004


def _address(query: QueryDict, page: int) -> str:
    changed = query.copy()
    changed["page"] = str(page)
    return f"?{changed.urlencode()}"
