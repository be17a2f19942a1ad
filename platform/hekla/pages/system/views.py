"""The page about the console itself, for operators."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from hekla.apps.system.deliveries import OutboxState
from hekla.apps.system.report import LogReader, SystemReport, system_report
from hekla.lib import clock
from hekla.pages.frame.people import person

_LATE_SECONDS = 120.0
"""A reader or a message that waits longer than this needs attention: readers run each minute at the latest."""
_MOST_CONTROLLERS, _MOST_PROBLEMS = 50, 10
_READERS = {
    "notifications": gettext_lazy("Notifications"),
    "job_metrics": gettext_lazy("Metrics in logs and files"),
    "measures": gettext_lazy("GPU time"),
    "job_measures": gettext_lazy("Counts of jobs"),
}
_OUTBOXES = {
    "notification_mail": gettext_lazy("Notifications by mail"),
    "notification_webhook": gettext_lazy("Notifications by webhook"),
    "invitation": gettext_lazy("Invitations"),
    "alert_action": gettext_lazy("Actions of alert rules"),
}


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """A reader of the event log on the page. `since`: the time of its first unread event."""

    reader: LogReader
    name: str
    since: datetime | None
    is_late: bool


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """An outbox on the page."""

    state: OutboxState
    name: str
    is_late: bool


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the state of the console: what waits, who leads, who lags, and the database."""
    report = system_report(person(request), now=clock.now())
    worst = sorted(report.controllers, key=lambda one: not (one.is_silent or one.fault))
    problems = list(_problems(report))
    context = {
        "report": report,
        "controllers": [(one, report.at - timedelta(seconds=one.silent_seconds)) for one in worst[:_MOST_CONTROLLERS]],
        "hidden": max(0, len(worst) - _MOST_CONTROLLERS),
        "readers": [_reader(one, report.at) for one in report.readers],
        "outboxes": [
            OutboxRow(one, str(_OUTBOXES.get(one.kind, one.kind)), _is_late(one, report.at)) for one in report.outboxes
        ],
        "problems": problems[:_MOST_PROBLEMS],
        "hidden_problems": max(0, len(problems) - _MOST_PROBLEMS),
    }
    return render(request, "system/show.html", context)


def _reader(reader: LogReader, at: datetime) -> ReaderRow:
    since = at - timedelta(seconds=reader.behind_seconds) if reader.behind else None
    return ReaderRow(reader, str(_READERS.get(reader.name, reader.name)), since, reader.behind_seconds > _LATE_SECONDS)


def _is_late(outbox: OutboxState, at: datetime) -> bool:
    return (
        outbox.overdue > 0 and outbox.oldest_at is not None and (at - outbox.oldest_at).total_seconds() > _LATE_SECONDS
    )


def _problems(report: SystemReport) -> Iterator[str]:
    """What needs attention, with what to do."""
    if report.broker.problem:
        yield _(
            "Valkey does not answer (%s). Pages and workers look for work by themselves, later than usual. Start it."
        ) % (report.broker.problem)
    for queue in report.broker.queues:
        if (queue.oldest_seconds or 0.0) > _LATE_SECONDS:
            yield _(
                "Messages of the queue “%s” wait for minutes. Start another worker, or look at the logs of workers."
            ) % (queue.name)
    for one in report.controllers:
        if one.is_silent:
            yield _("No controller works on the cluster %s. Start a worker of the queue “control”.") % one.cluster
        elif one.fault:
            yield _("The controller of the cluster %(cluster)s meets an error: %(fault)s") % {
                "cluster": one.cluster, "fault": one.fault
            }  # fmt: skip
    for reader in report.readers:
        if reader.behind_seconds > _LATE_SECONDS:
            yield _("A reader of the event log is late: %s. Look at the tasks that failed below.") % (
                _READERS.get(reader.name, reader.name)
            )
    for outbox in report.outboxes:
        if _is_late(outbox, report.at):
            yield _("Deliveries are late: %s. Look at their newest error below.") % _OUTBOXES.get(
                outbox.kind, outbox.kind
            )
