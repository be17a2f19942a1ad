"""Costs as a Plotly figure, and as rows for people who cannot see it and for files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hekla.apps.measures import labels
from hekla.apps.measures.cost_selectors import CostPart, CostReport, ResourceCost
from hekla.apps.measures.selectors import GroupBy
from hekla.apps.prices import labels as price_labels
from hekla.domain.cost_forecast import LEAST_DAYS, CostForecast
from hekla.domain.gpu_time import HELD, GpuClass
from hekla.domain.prices import HOUR_OF, as_decimal, in_words
from hekla.pages.frame import plots
from hekla.pages.operations import queries
from hekla.pages.operations.figures import PATTERNS

_FILTERED = {GroupBy.CLUSTER, GroupBy.QUEUE, GroupBy.TENANT, GroupBy.MODEL}


@dataclass(frozen=True, slots=True)
class CostRow:
    """A row in words: its cost, its part of all, and the cost of the period before."""

    name: str
    address: str
    cost: str
    part: str
    before: str = ""
    wasted: str = ""
    held: str = ""
    meaning: str = ""


def figure(report: CostReport) -> SafeString:
    """The costs of each step, stacked by class."""
    present = [what for what in HELD if any(point.costs[what] for point in report.points)]
    times = [point.at.astimezone(UTC).isoformat().replace("+00:00", "Z") for point in report.points]
    traces = [
        {
            "type": "bar",
            "name": str(labels.CLASSES[what]),
            "x": times,
            "y": [round(point.costs[what] / 1_000_000, 2) for point in report.points],
            "marker": {
                "color": labels.COLOURS[what],
                "pattern": {"shape": PATTERNS.get(what, ""), "size": 6, "solidity": 0.2},
            },
        }
        for what in present
    ]
    legend = {"orientation": "h", "y": -0.2, "traceorder": "normal"}
    axes = {"xaxis": {"type": "date"}, "yaxis": {"rangemode": "tozero", "title": {"text": report.currency}}}
    return plots.json_of(traces, barmode="stack", legend=legend, showlegend=True, **axes)


def class_rows(report: CostReport) -> list[CostRow]:
    """A row for each class."""
    totals, whole = report.totals, report.total
    return [
        CostRow(
            name=str(labels.CLASSES[what]),
            address=queries.address(report.query, of=what.value),
            cost=in_words(totals[what], report.currency),
            part=labels.part(totals[what], whole),
            before=in_words(report.before.get(what, 0), report.currency),
            meaning=_meaning(what),
        )
        for what in HELD
        if totals[what] or report.before.get(what, 0)
    ]


def _meaning(what: GpuClass) -> str:
    if what is GpuClass.UNMEASURED:
        return _("The use of these resources is not measured: GPUs without samples, and all CPU and memory.")
    return str(labels.MEANINGS[what])


def part_rows(parts: Sequence[CostPart], report: CostReport) -> list[CostRow]:
    """A row for each part."""
    by, currency = report.query.by, report.currency
    return [
        CostRow(
            name=part.name or _("CPU and memory"),
            address=queries.address(report.query, **{by.value: part.key}) if part.key and by in _FILTERED else "",
            cost=in_words(part.total, currency),
            part=labels.part(part.total, report.total),
            before=in_words(part.before, currency),
            wasted=in_words(part.wasted, currency),
        )
        for part in parts
    ]


def resource_rows(report: CostReport) -> list[CostRow]:
    """A row for each resource, with the hours that were held."""
    return [
        CostRow(
            name=price_labels.resource(one.resource, one.model),
            address="",
            cost=in_words(one.cost, report.currency),
            part=labels.part(one.cost, report.total),
            held=_hours(one),
        )
        for one in report.resources
    ]


def _hours(one: ResourceCost) -> str:
    return f"{one.held / HOUR_OF[one.resource]:,.1f}"


def file_rows(report: CostReport) -> Iterator[list[object]]:
    """The figure as a table: a head, then the cost by step and class, exact to the millionth."""
    yield ["time", "currency", *(what.value for what in HELD), "total"]
    for point in report.points:
        costs = (Decimal(as_decimal(point.costs[what])) for what in HELD)
        yield [point.at, report.currency, *costs, Decimal(as_decimal(point.total))]


@dataclass(frozen=True, slots=True)
class ForecastWords:
    """A forecast in words. `total` empty: there is none; `why` says why. `error`: how good the rule was."""

    spent: str
    total: str
    why: str
    error: str
    past: list[tuple[str, str, str, str]]


def forecast_words(found: CostForecast, currency: str) -> ForecastWords:
    """The forecast, how it was made, and what the same rule said in past months."""
    if found.total is None:
        facts = {"least": LEAST_DAYS, "days": found.days}
        why = _("Too little past for a forecast: it needs %(least)d whole days, and there are %(days)d.") % facts
    else:
        why = _("From the mean of the last %d whole days.") % found.days
    if found.error is None:
        error = _("How wrong it may be is not known: no past month is measured as a whole.")
    else:
        on_average = {"percent": f"{100 * found.error:.0f}", "months": len(found.past)}
        error = _("On the same day of %(months)s past months it was wrong by %(percent)s %% on average.") % on_average
    past = [
        (f"{one.month:%Y-%m}", in_words(one.forecast, currency), in_words(one.actual, currency),
         f"{100 * one.error:+.0f} %")
        for one in found.past
    ]  # fmt: skip
    total = "" if found.total is None else in_words(found.total, currency)
    return ForecastWords(in_words(found.spent, currency), total, why, error if found.total is not None else "", past)
