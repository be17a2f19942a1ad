"""What queues deserved and held as a Plotly figure, and as rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import reduce
from typing import Any

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.job_history import labels as job_labels
from hekla.apps.job_history import quota_messages
from hekla.apps.measures import labels
from hekla.apps.measures.queue_selectors import QueueTime, QueueUse, QueueUseReport, StarvedQueue
from hekla.pages.frame import plots
from hekla.pages.operations import queue_queries

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_PATTERNS = ("", "/", ".", "x")
_REST = ("#8a8f99", "")
"""Okabe's and Ito's colours; a pattern tells apart what colours may not."""
_MOST_QUEUES = 12
_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class UseRow:
    """A queue in words: GPU hours in the period, and those that it held in the period before."""

    name: str
    is_inner: bool
    page: str
    address: str
    deserved: str
    allocated: str
    waiting: str
    borrowed: str
    lent: str
    before: str


@dataclass(frozen=True, slots=True)
class StarvedRow:
    """A pair of queues in words. `other`: empty for queues that the person may not see."""

    pair: StarvedQueue
    page: str
    other_page: str
    resource: str

    @property
    def duration(self) -> str:
        return job_labels.duration(self.pair.milliseconds / 1000)


def figure(report: QueueUseReport) -> SafeString:
    """The GPUs that queues held, stacked; of one queue also the GPUs that it deserved and waited for."""
    rows = [one for one in report.queues if one.total.allocated] if report.query.queue else _held(report)
    first, rest = rows[:_MOST_QUEUES], rows[_MOST_QUEUES:]
    traces = [
        _stacked(report, one.name, one.points, (COLOURS[at % len(COLOURS)], _PATTERNS[at // len(COLOURS)]))
        for at, one in enumerate(first)
    ]
    if rest:
        points = [reduce(QueueTime.plus, step) for step in zip(*(one.points for one in rest), strict=True)]
        traces.append(_stacked(report, _others(len(rest)), points, _REST))
    if report.query.queue:
        for one in report.queues:
            traces.append(_line(report, _("Deserved"), [point.deserved for point in one.points], "solid"))
            wanted = [point.allocated + point.waiting for point in one.points]
            traces.append(_line(report, _("Allocated and waiting"), wanted, "dot"))
    legend = {"orientation": "h", "y": -0.2, "traceorder": "normal"}
    return plots.json_of(traces, xaxis={"type": "date"}, yaxis={"rangemode": "tozero"}, legend=legend, showlegend=True)


def _others(count: int) -> str:
    return ngettext("%(n)d other queue", "%(n)d other queues", count) % {"n": count}


def _held(report: QueueUseReport) -> list[QueueUse]:
    return [one for one in report.leaves if one.total.allocated]


def _stacked(report: QueueUseReport, name: str, points: Sequence[QueueTime], look: tuple[str, str]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "stackgroup": "gpus",
        "name": name,
        "x": _times(report),
        "y": mean(report, [point.allocated for point in points]),
        "line": {"width": 0.5, "color": look[0], "shape": "hv"},
        "fillcolor": look[0],
        "fillpattern": {"shape": look[1], "size": 6, "solidity": 0.2},
    }


def _line(report: QueueUseReport, name: str, amounts: Sequence[int], dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": _times(report),
        "y": mean(report, amounts),
        "line": {"width": 2, "color": "#d55e00", "dash": dash, "shape": "hv"},
    }


def _times(report: QueueUseReport) -> list[str]:
    return [at.astimezone(UTC).isoformat().replace("+00:00", "Z") for at in report.times]


def mean(report: QueueUseReport, amounts: Sequence[int]) -> list[float | None]:
    """Amounts over time as the mean number of GPUs in each step; None where nothing is measured yet."""
    step, found = report.query.step, list[float | None]()
    for at, amount in zip(report.times, amounts, strict=True):
        seconds = step.total_seconds()
        if report.measured_until is not None:
            seconds = min(seconds, (report.measured_until - at).total_seconds())
        found.append(round(amount / _MICROSECONDS / seconds, 3) if seconds > 0 else None)
    return found


def use_rows(report: QueueUseReport) -> list[UseRow]:
    """A row for each queue."""
    return [
        UseRow(
            name=one.name,
            is_inner=one.is_inner,
            page=reverse("queues:detail", args=[one.name]),
            address=queue_queries.address(report.query, queue=one.name),
            before=labels.hours(one.before.allocated),
            **{name: labels.hours(amount) for name, amount in one.total._asdict().items()},
        )
        for one in report.queues
    ]


def total_row(report: QueueUseReport) -> list[str]:
    """The sums of all queues without children, in the order of the columns."""
    leaves = report.leaves
    whole = reduce(QueueTime.plus, (one.total for one in leaves), QueueTime())
    return [*map(labels.hours, whole), labels.hours(sum(one.before.allocated for one in leaves))]


def starved_rows(pairs: Sequence[StarvedQueue]) -> list[StarvedRow]:
    """A row for each pair of queues."""
    return [
        StarvedRow(pair, _page(pair.queue), _page(pair.other), str(quota_messages.resource(pair.resource)))
        for pair in pairs
    ]


def _page(queue: str) -> str:
    return reverse("queues:detail", args=[queue]) if queue else ""


def file_rows(report: QueueUseReport) -> Iterator[list[object]]:
    """The figure as a table: a head, then the mean numbers of GPUs by step and queue."""
    yield ["time", "queue", *QueueTime._fields]
    for one in report.queues:
        columns = [mean(report, [point[at] for point in one.points]) for at in range(len(QueueTime._fields))]
        for at, *numbers in zip(report.times, *columns, strict=True):
            if any(numbers):
                yield [at, one.name, *("" if number is None else number for number in numbers)]
