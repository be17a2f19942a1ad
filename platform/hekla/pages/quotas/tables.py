"""The table of a tenant's quotas."""

from django.template.defaultfilters import floatformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.usage.quota_usage import QuotaRow
from hekla.pages.frame import html
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListTable, TextSearch


def _used(used: object, most: object, words: object, label: str) -> object:
    """The usage: a bar if there is a limit, else the number alone."""
    return words if most is None else html.progress(used, most, label=label, state="running", words=f"{words} / {most}")


def _jobs(row: QuotaRow) -> object:
    return _used(row.jobs, row.quota and row.quota.jobs, row.jobs, _("Unfinished jobs"))


def _sessions(row: QuotaRow) -> object:
    return _used(row.sessions, row.quota and row.quota.sessions, row.sessions, _("Debugging sessions"))


def _gpu_hours(row: QuotaRow) -> object:
    most, words = row.quota and row.quota.gpu_hours, _hours(row)
    return _used(round(row.gpu_hours), most, words, _("GPU-hours this month"))


def _hours(row: QuotaRow) -> str:
    """The hours on all cards; with those of each kind if there are several."""
    parts = row.hours_by_card
    return f"{floatformat(row.gpu_hours, 1)} ({parts})" if parts else str(floatformat(row.gpu_hours, 1))


class QuotasTable(ListTable):
    """The limits of the tenant and its members, and their usage."""

    label = gettext_lazy("Limits and usage")
    keys = False

    name = ListColumn(gettext_lazy("Applies to"), sort="name")
    jobs = ListColumn(gettext_lazy("Unfinished jobs"), sort="jobs", cell=_jobs)
    sessions = ListColumn(gettext_lazy("Debugging sessions"), sort="sessions", cell=_sessions)
    gpu_hours = ListColumn(gettext_lazy("GPU-hours this month"), sort="gpu_hours", cell=_gpu_hours)
    resources = ListColumn(gettext_lazy("Resources in use"), template="quotas/_resources.html")
    edit = ActionsColumn("quotas/_edit.html")


SEARCH = TextSearch(lambda row: row.name, gettext_lazy("User name"))
