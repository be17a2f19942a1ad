"""The tables of schedules and their runs."""

from django.http import HttpRequest, QueryDict
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters import ChoiceFilter

from hekla.apps.accounts.models import User
from hekla.apps.schedules import overview, selectors
from hekla.apps.schedules.models import Schedule, ScheduleRun
from hekla.apps.schedules.overview import RunRow, ScheduleRow
from hekla.pages.frame import html
from hekla.pages.frame.tables import (
    ListColumn,
    ListFilter,
    Listing,
    ListTable,
    OwnedFilter,
    listing,
    listing_of,
    named,
    noted,
)


def _next(row: ScheduleRow) -> SafeString:
    if row.schedule.is_suspended:
        return html.badge("stopped", _("suspended"))
    return html.moment(row.schedule.next_at)


class SchedulesTable(ListTable):
    """The schedules that the reader may see."""

    label = gettext_lazy("Schedules")
    suggests = "schedule"
    ids = "row-{0.schedule.uid}"

    name = ListColumn(
        gettext_lazy("Schedule"),
        sort="name",
        cell=lambda row: named(
            "schedules:detail", row.schedule.uid, row.schedule.name, f"{row.schedule.owner} · {row.schedule.tenant}"
        ),
    )
    time = ListColumn(
        gettext_lazy("Time"), cell=lambda row: noted(format_html("<code>{}</code>", row.cron), row.time_zone)
    )
    next = ListColumn(gettext_lazy("Next run"), sort=("is_suspended", "next_at"), cell=_next)
    last = ListColumn(gettext_lazy("Last run"), template="schedules/_last_run.html")


def schedules_on(request: HttpRequest, user: User) -> Listing:
    """The page of the list for a request."""
    return listing(request, SchedulesTable, selectors.visible_to(user), OwnedFilter, rows=overview.rows)


def schedules_for(query: QueryDict, user: User) -> Listing:
    """The same page for its live view."""
    return listing_of(query, SchedulesTable, selectors.visible_to(user), OwnedFilter, rows=overview.rows)


def _due(row: RunRow) -> SafeString:
    run, time = row.run, html.moment(row.run.due_at, exact=True)
    if run.until and run.until != run.due_at:
        time = format_html("{} – {}", time, html.moment(run.until, exact=True))
    return format_html('{}<span class="row-note">{}</span>', time, _("manual")) if run.by_hand else time


def _job(row: RunRow) -> SafeString | None:
    job = row.run.job
    if job is None:
        return None
    link = format_html('<a href="{}">{}</a>', html.address("jobs:detail", job.uid), job.name)
    return format_html('<span>{} <span class="muted">{}</span></span>', link, _("deleted")) if job.deleted_at else link


def _took(row: RunRow) -> SafeString | None:
    return html.duration(row.run.job.started_at, row.run.job.finished_at) if row.run.job else None


class ScheduleRunsTable(ListTable):
    """The runs of a schedule, including skipped and missed ones."""

    label = gettext_lazy("Run history")
    ids = "run-{0.run.pk}"

    due = ListColumn(gettext_lazy("Scheduled time"), sort="due_at", cell=_due)
    result = ListColumn(gettext_lazy("Result"), sort=("outcome", "job__phase"), template="schedules/_run_result.html")
    job = ListColumn(gettext_lazy("Job"), sort="job__name", cell=_job)
    took = ListColumn(gettext_lazy("Run time"), cell=_took, number=True)


class ScheduleRunsFilter(ListFilter):
    """Filters by job and result."""

    search = ("job__name", "message")
    hint = gettext_lazy("Job name")

    outcome = ChoiceFilter(
        label=gettext_lazy("Result"),
        empty_label=gettext_lazy("All results"),
        choices=[
            (ScheduleRun.Outcome.STARTED.value, gettext_lazy("started")),
            (ScheduleRun.Outcome.SKIPPED.value, gettext_lazy("skipped")),
            (ScheduleRun.Outcome.MISSED.value, gettext_lazy("missed")),
        ],
    )


def runs_on(request: HttpRequest, schedule: Schedule) -> Listing:
    """The page of the run history for a request."""
    return listing(request, ScheduleRunsTable, selectors.runs(schedule), ScheduleRunsFilter, rows=overview.run_rows)


def runs_for(query: QueryDict, schedule: Schedule) -> Listing:
    """The same page for its live view."""
    return listing_of(query, ScheduleRunsTable, selectors.runs(schedule), ScheduleRunsFilter, rows=overview.run_rows)
