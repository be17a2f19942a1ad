"""The tables of reports, and of the occasions at which one was sent."""

from datetime import timedelta

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from hekla.apps.reports import labels
from hekla.apps.reports.models import Report, ReportRun
from hekla.domain.reports import ReportSpec
from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, ListFilter, ListTable, named


def state_badge(report: Report) -> SafeString:
    """Whether it is sent."""
    if report.stopped:
        return html.badge("failed", str(gettext_lazy("stopped")), str(labels.STOPPED[report.stopped]))
    if report.is_paused:
        return html.badge("stopped", str(gettext_lazy("paused")))
    if report.next_at is None:
        return html.badge("neutral", str(gettext_lazy("only by hand")))
    return html.badge("running", str(gettext_lazy("on")))


def _spec(report: Report) -> ReportSpec:
    return ReportSpec.parse(report.spec)


class ReportsTable(ListTable):
    """The reports that the reader may see."""

    label = gettext_lazy("Reports")
    ids = "report-{0.uid}"

    name = ListColumn(
        gettext_lazy("Report"),
        sort="name",
        cell=lambda report: named("reports:detail", report.uid, report.name, labels.subject(_spec(report))),
    )
    when = ListColumn(gettext_lazy("Sent"), cell=lambda report: labels.times(_spec(report)))
    state = ListColumn(gettext_lazy("State"), cell=state_badge)
    next_at = ListColumn(gettext_lazy("Next"), sort="next_at", cell=lambda report: html.moment(report.next_at))
    owner = ListColumn(gettext_lazy("Owner"), sort="owner__username", cell=lambda report: report.owner.username)


class ReportsFilter(ListFilter):
    """Filters by name and owner."""

    search = ("name", "owner__username")
    hint = gettext_lazy("Name or owner")


def _days(run: ReportRun) -> str:
    """The first and the last day of a run, by the clock of the report."""
    zone = _spec(run.report).zone
    first, last = run.begin.astimezone(zone), (run.end - timedelta(hours=1)).astimezone(zone)
    return f"{first:%Y-%m-%d}" if first.date() == last.date() else f"{first:%Y-%m-%d} – {last:%Y-%m-%d}"


class ReportRunsTable(ListTable):
    """The occasions at which a report was sent, newest first. It is narrow: it stands beside the report."""

    label = gettext_lazy("History")
    ids = "run-{0.uid}"
    size = 10

    run = ListColumn(
        gettext_lazy("Sent"),
        cell=lambda run: render_to_string("reports/_run.html", {"run": run, "days": _days(run)}),
    )
