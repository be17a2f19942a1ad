"""Waiting times, throughput and failures as Plotly figures, and as rows for tables and files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils.safestring import SafeString

from hekla.apps.job_history.labels import about
from hekla.apps.jobs.models import Job
from hekla.apps.measures import job_labels, labels
from hekla.apps.measures.job_reports import (
    CountedJob,
    JobFigures,
    JobGroupBy,
    JobsPart,
    JobsQuery,
    JobsReport,
    WaitingNow,
)
from hekla.domain.job_measures import QUANTILES, FailureCause, MomentKind
from hekla.pages.frame import plots
from hekla.pages.operations import job_queries

_LEGEND = {"orientation": "h", "y": -0.2, "traceorder": "normal"}
_RESULT_PATTERNS = {MomentKind.COMPLETED: "", MomentKind.FAILED: "/", MomentKind.STOPPED: "."}
_CAUSE_PATTERNS = dict(zip(FailureCause, ("", "/", "|", "+", "\\", ".", "x", "-", ""), strict=True))
"""A pattern tells apart what colours may not."""
_DASHES = ("solid", "dash", "dashdot", "dot")
_FEW = 5
_SECONDS = (1, 10, 60, 600, 3600, 21_600, 86_400, 604_800, 2_592_000)
"""Ticks of the axis of waiting times."""
_FINE_SECONDS = (
    *(1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800),
    *(3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800),
)
_NARROW = 60
"""Up to this ratio of the longest to the shortest time, there is room for more ticks."""
COUNTED = (
    *(MomentKind.SUBMITTED, MomentKind.STARTED, MomentKind.COMPLETED, MomentKind.FAILED),
    *(MomentKind.STOPPED, MomentKind.UNSTARTED, MomentKind.PREEMPTED, MomentKind.RETRIED),
)


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A figure in words, that of the period before, what it counts, and the query string of the jobs that it counts."""

    name: str
    value: str
    before: str
    meaning: str
    address: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class JobsPartRow:
    """A part in words: counts, waiting times, and the causes of failures."""

    name: str
    address: str
    figures: JobFigures
    waiting: int
    waits: tuple[str, ...]

    @property
    def started(self) -> int:
        return self.figures.count(MomentKind.STARTED)

    @property
    def completed(self) -> int:
        return self.figures.count(MomentKind.COMPLETED)

    @property
    def failed(self) -> int:
        return self.figures.count(MomentKind.FAILED)

    @property
    def failed_part(self) -> str:
        """The part of the ended jobs that failed."""
        return labels.part(self.failed, self.figures.ended)

    @property
    def preempted(self) -> int:
        return self.figures.count(MomentKind.PREEMPTED)

    @property
    def main_cause(self) -> str:
        """The most frequent cause of failures; empty without any."""
        return next((str(job_labels.CAUSES[cause]) for cause in self.figures.causes), "")


@dataclass(frozen=True, slots=True)
class CountedRow:
    """A job that a figure counts, in words. `job`: None if it was deleted."""

    job: Job | None
    size: str
    at: datetime
    waited: str
    cause: str
    node: str
    image: str


def job_rows(rows: Sequence[CountedJob]) -> list[CountedRow]:
    """These jobs in words."""
    causes = {cause.value: str(label) for cause, label in job_labels.CAUSES.items()}
    return [
        CountedRow(
            job=row.job,
            size=job_labels.part_name(JobGroupBy.SIZE, row.moment.size),
            at=row.moment.at,
            waited=job_labels.seconds(row.waited.total_seconds()),
            cause=_cause(causes.get(row.moment.part, ""), row.moment.exit_code),
            node=row.moment.node,
            image=row.moment.image,
        )
        for row in rows
    ]


def _cause(name: str, exit_code: int | None) -> str:
    """A cause with the exit code, if there is one."""
    return f"{name} · {exit_code}" if name and exit_code else name


def waits_figure(report: JobsReport) -> SafeString:
    """Quantiles of waiting times over time, by the time of the start. The axis is logarithmic."""
    waits = {part: [_tenths(figures.wait(part)) for figures in report.points.values()] for part in QUANTILES}
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": quantile_name(part),
            "x": _times(report.points),
            "y": waits[part],
            "line": {"dash": dash},
            "marker": {"size": 6},
            "connectgaps": False,
        }
        for part, dash in zip(QUANTILES, _DASHES, strict=True)
    ]
    drawn = [wait for found in waits.values() for wait in found if wait]
    ticks = _FINE_SECONDS if drawn and max(drawn) <= _NARROW * min(drawn) else _SECONDS
    scale = {"type": "log", "tickvals": ticks, "ticktext": [about(one) for one in ticks]}
    return plots.json_of(traces, xaxis={"type": "date"}, yaxis=scale, legend=_LEGEND, showlegend=True)


def _tenths(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def quantile_name(part: float) -> str:
    """A quantile as people write it: `p95`."""
    return f"p{round(100 * part)}"


def throughput_figure(report: JobsReport) -> SafeString:
    """Jobs that ended, by result."""
    bars = [
        _bars(
            report,
            str(job_labels.KINDS[what]),
            (job_labels.RESULT_COLOURS[what], pattern),
            [one.count(what) for one in report.points.values()],
        )
        for what, pattern in _RESULT_PATTERNS.items()
    ]
    return _stacked(bars, max((figures.ended for figures in report.points.values()), default=0))


def causes_figure(report: JobsReport) -> SafeString:
    """Jobs that failed, by cause."""
    failed = MomentKind.FAILED
    bars = [
        _bars(
            report,
            str(job_labels.CAUSES[cause]),
            (job_labels.CAUSE_COLOURS[cause], pattern),
            [one.count(failed, cause) for one in report.points.values()],
        )
        for cause, pattern in _CAUSE_PATTERNS.items()
        if report.total.count(failed, cause)
    ]
    return _stacked(bars, max((figures.count(failed) for figures in report.points.values()), default=0))


def _bars(report: JobsReport, name: str, look: tuple[str, str], counts: Sequence[int]) -> dict[str, object]:
    marker = {"color": look[0], "pattern": {"shape": look[1], "fillmode": "overlay", "size": 6, "solidity": 0.2}}
    return {"type": "bar", "name": name, "x": _times(report.points), "y": counts, "marker": marker}


def _stacked(bars: Sequence[Mapping[str, object]], most: int) -> SafeString:
    """`most`: the highest bar. Small counts get a tick for each whole number, since there is no part of a job."""
    axes = {"xaxis": {"type": "date"}, "yaxis": {"rangemode": "tozero", **({"dtick": 1} if most <= _FEW else {})}}
    return plots.json_of(bars, barmode="stack", **axes, legend=_LEGEND, showlegend=True)


def _times(points: Mapping[datetime, JobFigures]) -> list[str]:
    return [at.astimezone(UTC).isoformat().replace("+00:00", "Z") for at in points]


def quantile_rows(report: JobsReport) -> list[tuple[str, str, str]]:
    """Name, waiting time and that of the period before: of each quantile, and the mean."""
    waits = (*((quantile_name(part), report.total.wait(part), report.before.wait(part)) for part in QUANTILES),)
    return [(name, job_labels.seconds(now), job_labels.seconds(before)) for name, now, before in waits]


def count_rows(report: JobsReport) -> list[FigureRow]:
    """How often each kind of moment occurred."""
    return [
        FigureRow(
            name=str(job_labels.KINDS[what]),
            value=f"{report.total.count(what):,}",
            before=f"{report.before.count(what):,}",
            meaning=str(job_labels.MEANINGS[what]),
            address=job_queries.address(report.query, of=what.value),
        )
        for what in COUNTED
    ]


def reason_rows(report: JobsReport) -> list[FigureRow]:
    """How long the jobs that started had waited, by reason."""
    whole, before = sum(report.total.reasons.values()), report.before.reasons
    return [
        FigureRow(
            name=str(job_labels.REASONS[reason]),
            value=job_labels.seconds(waited),
            before=job_labels.seconds(before.get(reason, 0)),
            meaning="",
            address=job_queries.address(report.query, of=MomentKind.WAITED.value, part=reason.value),
            part=labels.part(round(waited), round(whole)),
        )
        for reason, waited in report.total.reasons.items()
    ]


def cause_rows(report: JobsReport) -> list[FigureRow]:
    """How many jobs failed, by cause."""
    whole, before = report.total.count(MomentKind.FAILED), report.before
    return [
        FigureRow(
            name=str(job_labels.CAUSES[cause]),
            value=f"{count:,}",
            before=f"{before.count(MomentKind.FAILED, cause):,}",
            meaning=str(job_labels.CAUSE_MEANINGS[cause]),
            address=job_queries.address(report.query, of=MomentKind.FAILED.value, part=cause.value),
            part=labels.part(count, whole),
        )
        for cause, count in report.total.causes.items()
    ]


def waiting_reasons(waiting: WaitingNow) -> list[tuple[str, int]]:
    """Why jobs wait now, and how many of them."""
    return [(str(job_labels.REASONS[reason]), count) for reason, count in waiting.reasons.items()]


def part_rows(parts: Sequence[JobsPart], query: JobsQuery) -> list[JobsPartRow]:
    """A row for each part. `address`: the query string of that part alone; empty if it cannot be chosen."""
    return [
        JobsPartRow(
            name=job_labels.part_name(query.by, part.name),
            address=job_queries.address(query, **{query.by.value: part.key}) if part.key else "",
            figures=part.figures,
            waiting=part.waiting,
            waits=tuple(job_labels.seconds(part.figures.wait(one)) for one in QUANTILES),
        )
        for part in parts
    ]


def waiting_file(report: JobsReport) -> Iterator[list[object]]:
    """Counts and quantiles of waiting times in seconds by step, with a head."""
    yield ["time", *(what.value for what in COUNTED), *(f"wait_{quantile_name(part)}_seconds" for part in QUANTILES)]
    for at, figures in report.points.items():
        waits = (figures.wait(part) for part in QUANTILES)
        counts = (figures.count(what) for what in COUNTED)
        yield [at, *counts, *("" if wait is None else f"{wait:.1f}" for wait in waits)]


def failures_file(report: JobsReport) -> Iterator[list[object]]:
    """Failed jobs by step and cause, and all jobs that ended, with a head."""
    yield ["time", *(cause.value for cause in FailureCause), "ended"]
    for at, figures in report.points.items():
        yield [at, *(figures.count(MomentKind.FAILED, cause) for cause in FailureCause), figures.ended]
