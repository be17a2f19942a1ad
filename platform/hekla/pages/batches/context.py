"""The template context of batch pages, shared by the full page and its live parts."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import QueryDict

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors
from hekla.apps.batches.models import Batch
from hekla.apps.batches.ranking import Ranking, Run, best_run, metric_names, ranking, varying_parameters
from hekla.domain import formats
from hekla.domain.phases import JobPhase
from hekla.domain.sweeps import SweepSpec
from hekla.lib import clock
from hekla.pages.batches.curves import curves
from hekla.pages.batches.parallel import parallel
from hekla.pages.batches.run_rows import run_rows

PAGE = 100
MOST_METRICS = 8
"""The columns of metrics; files and REST have up to `ranking.MOST_NAMES`."""
MOST_IN_PREVIEW = 5
_ORDER = [phase.value for phase in JobPhase]


@dataclass(frozen=True, slots=True)
class Segment:
    """The jobs in one phase, as a part of a bar that is 100 wide."""

    phase: str
    count: int
    start: float
    width: float
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch in the list."""

    batch: Batch
    size: int
    bar: Sequence[Segment]


def rows(batches: Sequence[Batch]) -> list[BatchRow]:
    """Rows for these batches, each with the phases of its jobs."""
    counts = selectors.phase_counts(batches)
    return [BatchRow(batch, sum(counts[batch.pk].values()), bar(counts[batch.pk])) for batch in batches]


def bar(counts: Mapping[str, int], chosen: Sequence[str] = ()) -> list[Segment]:
    """The segments of the bar, in the order of a job's life. `chosen`: the phases that the filter selects."""
    total, start, found = sum(counts.values()), 0.0, []
    for phase in _ORDER:
        if count := counts.get(phase, 0):
            width = 100 * count / total
            found.append(Segment(phase, count, round(start, 3), round(width, 3), phase in chosen))
            start += width
    return found


@dataclass(frozen=True, slots=True)
class RunColumn:
    """A column of the table, of a parameter or a metric. `field`: its sort parameter."""

    label: str
    field: str
    is_metric: bool = False


@dataclass(frozen=True, slots=True)
class RunTable:
    """The jobs of a batch that the query string selects, in its order, with the ranking that it chooses."""

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


def table(batch: Batch, query: QueryDict) -> RunTable:
    """All jobs of the batch, and those that the filters select, sorted."""
    runs = selectors.runs(batch)
    order = ranking(runs, metric=query.get("metric", ""), goal=query.get("goal", ""), value=query.get("value", ""))
    phases, text, sort = query.getlist("phase"), query.get("q", "")[:100], query.get("sort", "")
    found = [run for run in runs if _fits(run, phases, text)]
    names, chosen = metric_names(runs), [order.metric] if order else []
    metrics = [*chosen, *(name for name in names if name not in chosen)]
    which = order.value if order else "last"
    return RunTable(
        runs, _sorted(found, sort, which), varying_parameters(runs), metrics, order, best_run(runs, order), sort
    )


def detail(batch: Batch, user: User, query: QueryDict) -> dict[str, Any]:
    """Everything that the page of a batch shows. The query string holds the filters, the order and the ranking."""
    jobs = table(batch, query)
    phases = query.getlist("phase")
    counts = Counter(run.member.job.phase for run in jobs.runs)
    page = _page(query, len(jobs.found))
    metrics = jobs.metrics[:MOST_METRICS]
    return {
        "batch": batch,
        "size": len(jobs.runs),
        "bar": bar(counts, phases),
        "columns": [
            *(RunColumn(name, f"p.{name}") for name in jobs.parameters),
            *(RunColumn(name, f"m.{name}", is_metric=True) for name in metrics),
        ],
        "members": run_rows(_row(run, jobs, metrics) for run in jobs.found[(page - 1) * PAGE : page * PAGE]),
        "found": len(jobs.found),
        "previous": _address(query, page - 1) if page > 1 else "",
        "next": _address(query, page + 1) if page * PAGE < len(jobs.found) else "",
        "sort": jobs.sort,
        "q": query.get("q", "")[:100],
        "words": query,
        "query": query.urlencode(),
        "running": sum(not JobPhase(phase).is_final for phase in counts.elements()),
        "failed": sum(counts[phase] for phase in selectors.FAILED),
        "may_act": selectors.may_act(user, batch),
        "may_retry": selectors.may_retry(user, batch),
        **_ranking(jobs, query),
    }


def _ranking(jobs: RunTable, query: QueryDict) -> dict[str, Any]:
    """The choice of the ranking, the best run, and the plots."""
    order, names = jobs.order, jobs.parameters
    if order is None:
        return {"order": None}
    runs = jobs.found
    return {
        "order": order,
        "goal": query.get("goal", ""),
        "metrics": jobs.metrics,
        "unlisted_metrics": max(0, len(jobs.metrics) - MOST_METRICS),
        "best": _row(jobs.best, jobs, [order.metric]) if jobs.best else None,
        "curves": curves(runs, order, names),
        "parallel": parallel(runs, names, order),
    }


def manifest(batch: Batch) -> str:
    """The manifest of a sweep's job, with its placeholders; empty if the batch has no spec."""
    if not batch.spec:
        return ""
    return formats.dump(SweepSpec.parse(batch.spec).job.model_copy(update={"name": batch.name}))


def _fits(run: Run, phases: Sequence[str], text: str) -> bool:
    """Whether the phase is selected, and the name or a parameter value contains the text."""
    job = run.member.job
    words = [job.name, *(f"{name}={value}" for name, value in run.member.parameters.items())]
    return (not phases or job.phase in phases) and any(text.lower() in word.lower() for word in words)


def _sorted(runs: Sequence[Run], sort: str, value: str) -> list[Run]:
    """The runs by number, name, phase, end, run time, a parameter (`p.lr`) or a metric (`m.loss`).

    Numeric values of parameters sort before words. Runs without the value are last in both directions.
    """
    field, key = sort.removeprefix("-"), _key(sort.removeprefix("-"), value)
    with_key = [(found, run) for run in runs if (found := key(run)) is not None]
    with_key.sort(key=lambda pair: pair[0] if field in {"", "number"} else (pair[0], pair[1].member.number))
    if sort[:1] == "-":
        with_key.reverse()
    return [*(run for _found, run in with_key), *(run for run in runs if key(run) is None)]


def _key(field: str, value: str) -> Callable[[Run], Any]:
    """The sort key of a run for this field; None if the run has no such value."""
    if field.startswith("p."):
        return lambda run: _size(run.member.parameters.get(field[2:], ""))
    if field.startswith("m."):
        return lambda run: run.value(field[2:], value)
    now = clock.now()
    keys: dict[str, Callable[[Run], Any]] = {
        "name": lambda run: run.member.job.name,
        "phase": lambda run: _ORDER.index(run.member.job.phase),
        "ended": lambda run: run.member.job.finished_at,
        "took": lambda run: run_seconds(run, now),
    }
    return keys.get(field, lambda run: run.member.number)


def run_seconds(run: Run, now: datetime) -> float | None:
    """How long the job has run, in seconds; None before its start."""
    job = run.member.job
    return ((job.finished_at or now) - job.started_at).total_seconds() if job.started_at else None


def _size(value: str) -> tuple[int, float, str]:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    return (1, 0.0, value) if math.isnan(number) else (0, number, "")


def _row(run: Run, jobs: RunTable, metrics: Sequence[str]) -> dict[str, Any]:
    member = run.member
    figures = {name: run.value(name, jobs.value) for name in metrics}
    return {
        "member": member,
        "job": member.job,
        "values": [{"name": name, "value": member.parameters.get(name, "")} for name in jobs.parameters],
        "metrics": [
            {"name": name, "value": "" if value is None else f"{value:.4g}", "exact": value}
            for name, value in figures.items()
        ],
        "is_best": run is jobs.best,
    }


def _page(query: QueryDict, count: int) -> int:
    last = max(1, -(-count // PAGE))
    page = query.get("page", "")
    return min(max(1, int(page)), last) if page.isascii() and page.isdigit() and len(page) < 6 else 1  # noqa: PLR2004


def _address(query: QueryDict, page: int) -> str:
    changed = query.copy()
    changed["page"] = str(page)
    return f"?{changed.urlencode()}"
