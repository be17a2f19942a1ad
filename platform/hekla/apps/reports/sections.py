"""The sections of reports. A new one is an entry of `SECTIONS`: its label, and a function that writes it for a reader.

Each asks the measures as the reader, so it shows what this person may see, and nothing else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.accounts.models import User
from hekla.apps.measures import job_reports, labels, selectors
from hekla.apps.measures.job_reports import JobsReport
from hekla.apps.measures.selectors import Amounts, GpuTimePart, GpuTimePoint, GpuTimeReport, GroupBy
from hekla.apps.reports import cost_section, job_sections
from hekla.apps.reports.contents import ReportFigure, ReportPart, ReportTable, moment, plain
from hekla.apps.reports.period_queries import SpanQuery, jobs_query_of
from hekla.domain.gpu_time import GPU_HOUR, HELD, WASTED, GpuClass
from hekla.domain.reports import ReportPeriod, ReportSpec

MOST_ROWS = 30
"""Of a table; the rest is added up in one more row."""
_MOST_WASTEFUL = 10


@dataclass(slots=True)
class SectionSource:
    """What sections are written from: the report, its question to the measures, its reader, and what was read."""

    spec: ReportSpec
    query: SpanQuery
    reader: User
    now: datetime
    _read: dict[GroupBy, GpuTimeReport] = field(default_factory=dict)
    _jobs: JobsReport | None = None

    def gpu_time(self, by: GroupBy = GroupBy.TENANT) -> GpuTimeReport:
        """The GPU time of the period with these parts, as the reader may see it. Raises NotFound."""
        if by not in self._read:
            self._read[by] = selectors.gpu_time(self.reader, replace(self.query, by=by), now=self.now)
        return self._read[by]

    def jobs(self) -> JobsReport:
        """What happened to the jobs of the period, by queue, as far as the reader may see it. Raises NotFound."""
        if self._jobs is None:
            query = jobs_query_of(self.query)
            self._jobs = job_reports.jobs_report(self.reader, query, now=self.now, most_parts=MOST_ROWS)
        return self._jobs

    def notices(self) -> tuple[str, ...]:
        """What limits the figures."""
        if self._jobs is not None and not self._read:
            return (_("This cluster is simulated."),) if self._jobs.is_simulated else ()
        report, found = self.gpu_time(next(iter(self._read), GroupBy.TENANT)), list[str]()
        if report.is_simulated:
            found.append(_("This cluster is simulated."))
        if report.measured_until is None or report.measured_until <= report.begin:
            found.append(_("No GPU time is measured in this period."))
        elif report.measured_until < report.end:
            found.append(_("Measured until %s.") % moment(report.measured_until, self.spec.zone))
        if not report.is_capacity:
            found.append(_("Free GPUs are not counted: these figures are about pods that held GPUs."))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class ReportSection:
    """`label`: what people choose. `write`: its parts; it must bound its rows."""

    label: Any
    write: Callable[[SectionSource], Iterator[ReportPart]]


def _classes(source: SectionSource) -> Iterator[ReportPart]:
    report = source.gpu_time()
    totals, before = report.totals, report.before
    whole, whole_before = sum(totals.values()), sum(before.values())
    rows = tuple(
        (
            str(labels.CLASSES[what]),
            labels.hours(totals[what]),
            labels.part(totals[what], whole),
            labels.hours(before.get(what, 0)),
            _change(totals[what], before.get(what, 0)),
        )
        for what in report.classes
    )
    yield ReportPart(
        title=_("What became of the GPU time"),
        text=_("The classes add up to the capacity.") if report.is_capacity else "",
        figure=_figure(report, source.spec),
        table=ReportTable(
            heads=(_("Class"), _("GPU hours"), _("Part"), _("Period before"), _("Difference")),
            rows=rows,
            foot=(_("Total"), labels.hours(whole), "", labels.hours(whole_before), _change(whole, whole_before)),
            colours=tuple(labels.COLOURS[what] for what in report.classes),
        ),
    )


def _change(amount: int, before: int) -> str:
    """How much more in per cent; empty without an amount before."""
    if not before:
        return ""
    percent = round(100 * (amount - before) / before)
    return f"{percent:+} %" if percent else "0 %"


def _figure(report: GpuTimeReport, spec: ReportSpec) -> ReportFigure | None:
    """Bars of hours of a day, or of days."""
    if not any(report.totals.values()):
        return None
    is_day = spec.period is ReportPeriod.DAY
    bars: dict[str, list[GpuTimePoint]] = {}
    for point in report.points:
        at = point.at.astimezone(spec.zone)
        bars.setdefault(f"{at:%H}" if is_day else f"{at:%m-%d}", []).append(point)
    return ReportFigure(
        label=_("GPU hours by hour") if is_day else _("GPU hours by day"),
        colours=tuple(labels.COLOURS[what] for what in report.classes),
        bars=tuple((name, _heights(points, report.classes)) for name, points in bars.items()),
    )


def _heights(points: Sequence[GpuTimePoint], classes: Sequence[GpuClass]) -> tuple[float, ...]:
    return tuple(sum(point.amounts.get(what, 0) for point in points) / GPU_HOUR for what in classes)


def _parts_by(by: GroupBy, title: Any) -> Callable[[SectionSource], Iterator[ReportPart]]:  # noqa: ANN401
    def write(source: SectionSource) -> Iterator[ReportPart]:
        parts = [part for part in source.gpu_time(by).parts if _held(part.amounts)]
        yield _table_of(parts, str(labels.PARTS[by]), str(title), MOST_ROWS)

    return write


def _table_of(parts: Sequence[GpuTimePart], head: str, title: str, most: int) -> ReportPart:
    rows = [_row(plain(part.name), part.amounts) for part in parts[:most]]
    if rest := parts[most:]:
        rows.append(_row(_("%d more") % len(rest), _sum(rest)))
    if not rows:
        return ReportPart(title, _("No pod held GPUs in this period."))
    heads = (head, _("Held"), _("Useful"), _("Wasted"), _("Part wasted"))
    return ReportPart(title, _("In GPU hours."), table=ReportTable(heads, tuple(rows)))


def _row(name: str, amounts: Amounts) -> tuple[str, ...]:
    held, wasted = _held(amounts), _wasted(amounts)
    useful = amounts.get(GpuClass.USEFUL, 0)
    return name, labels.hours(held), labels.hours(useful), labels.hours(wasted), labels.part(wasted, held)


def _sum(parts: Sequence[GpuTimePart]) -> Amounts:
    return {what: sum(part.amounts.get(what, 0) for part in parts) for what in HELD}


def _held(amounts: Amounts) -> int:
    return sum(amounts.get(what, 0) for what in HELD)


def _wasted(amounts: Amounts) -> int:
    return sum(amounts.get(what, 0) for what in WASTED)


def _waste(source: SectionSource) -> Iterator[ReportPart]:
    report = source.gpu_time(GroupBy.PERSON)
    held = _held(report.totals)
    rows = tuple(
        (
            str(labels.CLASSES[what]),
            labels.hours(report.totals[what]),
            labels.part(report.totals[what], held),
            labels.hours(report.before.get(what, 0)),
        )
        for what in WASTED
    )
    whole = (_wasted(report.totals), _wasted(report.before))
    yield ReportPart(
        title=_("Wasted GPU time"),
        text=_("Parts are those of the time that pods held GPUs."),
        table=ReportTable(
            heads=(_("Class"), _("GPU hours"), _("Part"), _("Period before")),
            rows=rows,
            foot=(_("Total"), labels.hours(whole[0]), labels.part(whole[0], held), labels.hours(whole[1])),
        ),
    )
    wasteful = sorted((part for part in report.parts if _wasted(part.amounts)), key=lambda one: -_wasted(one.amounts))
    if wasteful:
        head = str(labels.PARTS[GroupBy.PERSON])
        yield _table_of(wasteful[:_MOST_WASTEFUL], head, _("People with most wasted GPU time"), _MOST_WASTEFUL)


SECTIONS: Mapping[str, ReportSection] = {
    "classes": ReportSection(gettext_lazy("GPU time by class, with the period before"), _classes),
    "tenants": ReportSection(
        gettext_lazy("GPU time by tenant"), _parts_by(GroupBy.TENANT, gettext_lazy("GPU time by tenant"))
    ),
    "queues": ReportSection(
        gettext_lazy("GPU time by queue"), _parts_by(GroupBy.QUEUE, gettext_lazy("GPU time by queue"))
    ),
    "people": ReportSection(
        gettext_lazy("GPU time by person"), _parts_by(GroupBy.PERSON, gettext_lazy("GPU time by person"))
    ),
    "waste": ReportSection(gettext_lazy("Wasted GPU time"), _waste),
    "cost": ReportSection(
        gettext_lazy("Cost, with the period before"),
        lambda source: cost_section.write(source.query, source.reader, source.now),
    ),
    "waiting": ReportSection(gettext_lazy("Waiting times and results of jobs"), job_sections.waiting),
    "failures": ReportSection(gettext_lazy("Failed jobs by cause"), job_sections.failures),
}
"""By the name that the spec of a report has, in the order in which the form offers them."""
DEFAULT = ("classes", "tenants", "waste")
