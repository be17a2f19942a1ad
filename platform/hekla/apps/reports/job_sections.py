"""The sections about jobs: how long they waited, what became of them, and why they failed."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from hekla.apps.measures import job_labels, job_reports, labels
from hekla.apps.measures.job_reports import FailurePlace, JobGroupBy, JobsReport
from hekla.apps.reports.contents import ReportFigure, ReportPart, ReportTable, plain
from hekla.domain.job_measures import QUANTILES, RESULTS, MomentKind
from hekla.domain.reports import ReportPeriod, ReportSpec

if TYPE_CHECKING:  # sections import this module
    from hekla.apps.reports.sections import SectionSource

_MOST_PLACES = 10
_HALF, _MOST = 0.5, 0.9


def waiting(source: "SectionSource") -> Iterator[ReportPart]:
    """Waiting times and results, with the period before, then the queues with most jobs."""
    report = source.jobs()
    if not report.total.counts and not report.before.counts:
        yield ReportPart(_("Waiting times"), _("No jobs in this period"))
        return
    waits = tuple(
        (f"p{round(100 * part)}", *map(job_labels.seconds, (report.total.wait(part), report.before.wait(part))))
        for part in QUANTILES
    )
    mean = tuple(map(job_labels.seconds, (report.total.mean_wait, report.before.mean_wait)))
    heads: tuple[str, ...] = (_("Quantile"), _("Waiting time"), _("Period before"))
    text = _("The time from the submission of a job to its first start. p95 means: 95 of 100 jobs waited no longer.")
    yield ReportPart(_("Waiting times"), text, table=ReportTable(heads, waits, (_("Mean"), *mean)))
    rows = tuple(
        (str(job_labels.KINDS[what]), f"{report.total.count(what):,}", f"{report.before.count(what):,}")
        for what in RESULTS
    )
    heads = (_("Result"), _("Number"), _("Period before"))
    counts = [[one.count(what) for one in report.points.values()] for what in RESULTS]
    colours = tuple(job_labels.RESULT_COLOURS[what] for what in RESULTS)
    figure = _figure(report, source.spec, counts, colours)
    table = ReportTable(heads, rows, colours=colours if figure else ())
    yield ReportPart(_("Jobs that ended"), figure=figure, table=table)
    yield from _queues(report)


def _queues(report: JobsReport) -> Iterator[ReportPart]:
    heads = (_("Queue"), _("Started"), "p50", "p90", _("Completed"), _("Failed"))
    rows = tuple(
        (
            plain(job_labels.part_name(JobGroupBy.QUEUE, part.name)),
            f"{part.figures.count(MomentKind.STARTED):,}",
            job_labels.seconds(part.figures.wait(_HALF)),
            job_labels.seconds(part.figures.wait(_MOST)),
            f"{part.figures.count(MomentKind.COMPLETED):,}",
            f"{part.figures.count(MomentKind.FAILED):,}",
        )
        for part in report.parts
        if part.figures.counts
    )
    if rows:
        more = _("%d more") % report.more_parts if report.more_parts else ""
        yield ReportPart(_("Waiting times by queue"), more, table=ReportTable(heads, rows))


def failures(source: "SectionSource") -> Iterator[ReportPart]:
    """Failed jobs by cause, with the period before, then the nodes where most jobs failed."""
    report, failed = source.jobs(), MomentKind.FAILED
    whole, before = report.total.count(failed), report.before.count(failed)
    if not whole and not before:
        yield ReportPart(_("Failed jobs by cause"), _("No job has failed."))
        return
    causes = list(report.total.causes)
    rows = tuple(
        (
            str(job_labels.CAUSES[cause]),
            f"{report.total.count(failed, cause):,}",
            labels.part(report.total.count(failed, cause), whole),
            f"{report.before.count(failed, cause):,}",
        )
        for cause in causes
    )
    colours = tuple(job_labels.CAUSE_COLOURS[cause] for cause in causes)
    counts = [[one.count(failed, cause) for one in report.points.values()] for cause in causes]
    heads: tuple[str, ...] = (_("Cause"), _("Number"), _("Part"), _("Period before"))
    foot = (_("Total"), f"{whole:,}", labels.part(whole, report.total.ended), f"{before:,}")
    yield ReportPart(
        title=_("Failed jobs by cause"),
        text=_("The part of the total is that of the jobs that ended."),
        figure=_figure(report, source.spec, counts, colours),
        table=ReportTable(heads, rows, foot, colours if whole else ()),
    )
    places = job_reports.failure_places(source.reader, report.query, FailurePlace.NODE, now=source.now)[:_MOST_PLACES]
    if places:
        heads = (str(job_labels.PLACES[FailurePlace.NODE]), _("Failed"), _("Most frequent cause"))
        found = tuple((plain(where), f"{count:,}", str(job_labels.CAUSES[cause])) for where, count, cause in places)
        yield ReportPart(_("Nodes where most jobs failed"), table=ReportTable(heads, found))


def _figure(
    report: JobsReport, spec: ReportSpec, counts: Sequence[Sequence[int]], colours: tuple[str, ...]
) -> ReportFigure | None:
    """Bars of hours of a day, or of days. `counts`: by part, one for each hour."""
    if not any(map(any, counts)):
        return None
    is_day, bars = spec.period is ReportPeriod.DAY, dict[str, list[int]]()
    for place, at in enumerate(report.points):
        bar = bars.setdefault(_bar(at, spec, is_day=is_day), [0] * len(counts))
        for part, amounts in enumerate(counts):
            bar[part] += amounts[place]
    label = _("Jobs by hour") if is_day else _("Jobs by day")
    drawn = tuple((name, tuple(map(float, bar))) for name, bar in bars.items())
    return ReportFigure(label, colours, drawn, counts=True)


def _bar(at: datetime, spec: ReportSpec, *, is_day: bool) -> str:
    local = at.astimezone(spec.zone)
    return f"{local:%H}" if is_day else f"{local:%m-%d}"
