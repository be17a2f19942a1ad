"""GPU time as a Plotly figure, and as rows for people who cannot see it and for files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC

from django.utils.safestring import SafeString

from hekla.apps.measures import labels
from hekla.apps.measures.selectors import GpuTimePart, GpuTimeQuery, GpuTimeReport
from hekla.domain.gpu_time import GPU_HOUR, HELD, WASTED, GpuClass
from hekla.pages.frame import plots
from hekla.pages.operations import queries

PATTERNS = {
    GpuClass.IDLE: "/",
    GpuClass.GANG: ".",
    GpuClass.PREEMPTED: "\\",
    GpuClass.RETRIED: "x",
    GpuClass.FAILED: "-",
    GpuClass.DRAINED: "+",
    GpuClass.DOWN: "|",
}
"""A pattern tells apart what colours may not."""


@dataclass(frozen=True, slots=True)
class ClassRow:
    """A class in words: GPU hours, their part of all, and those of the period before."""

    what: GpuClass
    hours: str
    part: str
    before: str
    address: str

    @property
    def name(self) -> str:
        return str(labels.CLASSES[self.what])

    @property
    def meaning(self) -> str:
        return str(labels.MEANINGS[self.what])

    @property
    def is_held(self) -> bool:
        return self.what in HELD


@dataclass(frozen=True, slots=True)
class PartRow:
    """A part in words: GPU hours that pods held, the useful ones and the wasted ones."""

    name: str
    address: str
    held: str
    useful: str
    wasted: str
    wasted_part: str


def figure(report: GpuTimeReport) -> SafeString:
    """The stacked classes over time, each as its mean number of GPUs."""
    present = [what for what in report.classes if any(point.amounts[what] for point in report.points)]
    times = [point.at.astimezone(UTC).isoformat().replace("+00:00", "Z") for point in report.points]
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "stackgroup": "gpus",
            "name": str(labels.CLASSES[what]),
            "x": times,
            "y": gpus(report, what),
            "line": {"width": 0.5, "color": labels.COLOURS[what], "shape": "hv"},
            "fillcolor": labels.COLOURS[what],
            "fillpattern": {"shape": PATTERNS.get(what, ""), "size": 6, "solidity": 0.2},
        }
        for what in present
    ]
    legend = {"orientation": "h", "y": -0.2, "traceorder": "normal"}
    return plots.json_of(traces, xaxis={"type": "date"}, yaxis={"rangemode": "tozero"}, legend=legend, showlegend=True)


def gpus(report: GpuTimeReport, what: GpuClass) -> list[float | None]:
    """The mean number of GPUs of a class in each step; None where nothing is measured yet."""
    step, found = report.query.step, list[float | None]()
    for point in report.points:
        seconds = step.total_seconds()
        if report.measured_until is not None:
            seconds = min(seconds, (report.measured_until - point.at).total_seconds())
        found.append(round(point.amounts[what] / 1_000_000 / seconds, 3) if seconds > 0 else None)
    return found


def class_rows(report: GpuTimeReport) -> list[ClassRow]:
    """A row for each class."""
    totals = report.totals
    whole = sum(totals.values())
    return [
        ClassRow(
            what=what,
            hours=labels.hours(totals[what]),
            part=labels.part(totals[what], whole),
            before=labels.hours(report.before.get(what, 0)),
            address=queries.address(report.query, of=what.value),
        )
        for what in report.classes
    ]


def part_rows(parts: Sequence[GpuTimePart], query: GpuTimeQuery) -> list[PartRow]:
    """A row for each part. `address`: the query string of that part alone; empty if it cannot be chosen."""
    return [_part_row(part, query) for part in parts]


def _part_row(part: GpuTimePart, query: GpuTimeQuery) -> PartRow:
    held = sum(part.amounts.get(what, 0) for what in HELD)
    wasted = sum(part.amounts.get(what, 0) for what in WASTED)
    useful = part.amounts.get(GpuClass.USEFUL, 0)
    shares = (labels.hours(held), labels.hours(useful), labels.hours(wasted), labels.part(wasted, held))
    address = queries.address(query, **{query.by.value: part.key}) if part.key else ""
    return PartRow(part.name, address, *shares)


def file_rows(report: GpuTimeReport) -> Iterator[list[object]]:
    """The figure as a table: a head, then GPU hours by step and class."""
    yield ["time", *(what.value for what in report.classes)]
    for point in report.points:
        yield [point.at, *(f"{point.amounts[what] / GPU_HOUR:.6f}" for what in report.classes)]
