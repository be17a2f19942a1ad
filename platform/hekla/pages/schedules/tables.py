"""The list of schedules."""

from django.http import HttpRequest, QueryDict
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.accounts.models import User
from hekla.apps.schedules import overview, selectors
from hekla.apps.schedules.overview import ScheduleRow
from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, Listing, ListTable, OwnedFilter, listing, listing_of, named, noted


def _next(row: ScheduleRow) -> SafeString:
    if row.schedule.is_suspended:
        return html.badge("stopped", _("suspended"))
    return html.moment(row.schedule.next_at)


class SchedulesTable(ListTable):
    """The schedules that one may see."""

    label = gettext_lazy("Schedules")
    ids = "row-{0.schedule.uid}"

    name = ListColumn(
        gettext_lazy("Schedule"),
        sort="name",
        cell=lambda row: named(
            "schedules:detail", row.schedule.uid, row.schedule.name, f"{row.schedule.owner} · {row.schedule.tenant}"
        ),
    )
    time = ListColumn(
        gettext_lazy("Time"), cell=lambda row: noted(format_html("<code>{}</code>", row.spec.cron), row.spec.time_zone)
    )
    next = ListColumn(gettext_lazy("Next run"), sort=("is_suspended", "next_at"), cell=_next)
    last = ListColumn(gettext_lazy("Last run"), template="schedules/_last_run.html")


def schedules_on(request: HttpRequest, user: User) -> Listing:
    """The page of the list that somebody opens."""
    return listing(request, SchedulesTable, selectors.visible_to(user), OwnedFilter, rows=overview.rows)


def schedules_for(query: QueryDict, user: User) -> Listing:
    """The same page again, for its live part."""
    return listing_of(query, SchedulesTable, selectors.visible_to(user), OwnedFilter, rows=overview.rows)
