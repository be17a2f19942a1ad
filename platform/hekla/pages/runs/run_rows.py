"""The rows of the table of runs, built in Python because there are a hundred (`frame/html`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from markupsafe import escape as text

from hekla.apps.job_history import explanations, messages
from hekla.apps.jobs.models import Job
from hekla.domain.phases import JobPhase
from hekla.lib.text import truncate
from hekla.pages.frame import html

_MOST_VALUE, _MOST_MESSAGE = 60, 160
RunRow = Mapping[str, Any]
"""A row of `table`: `run`, `job`, `values`, `metrics` and `is_best`."""


def run_rows(rows: Iterable[RunRow]) -> SafeString:
    """The rows, with the cells of the parameters and metrics between the state and the end of each job."""
    makers = (_number(), _job(), _state(), _values, _metrics, _ended(), _took())
    return SafeString("".join(_row(row, makers) for row in rows))


def _row(row: RunRow, makers: Sequence[Callable[[RunRow], str]]) -> str:
    best = ' class="best"' if row["is_best"] else ""
    return f'<tr id="run-{row["run"].number}"{best}>{"".join(make(row) for make in makers)}</tr>'


def _number() -> Callable[[RunRow], str]:
    begin = f'<td data-label="{text(_("Job number"))}">'
    return lambda row: f"{begin}{row['run'].number}</td>"


def _job() -> Callable[[RunRow], str]:
    best = f' <span class="badge state-done">{html.icon("check")}{text(_("best"))}</span>'
    deleted, attempt = f' <span class="muted">{text(_("deleted"))}</span>', _("Attempt %(n)s")

    def head(row: RunRow) -> str:
        job, run = row["job"], row["run"]
        more = (best if row["is_best"] else "") + (deleted if job.deleted_at else "")
        if run.attempt > 1:
            more += f'<span class="row-note">{text(attempt % {"n": run.attempt})}</span>'
        return f'<th scope="row"><a href="{html.address("jobs:detail", job.uid)}">{text(job.name)}</a>{more}</th>'

    return head


def _state() -> Callable[[RunRow], str]:
    begin = f'<td data-label="{text(_("State"))}"><span>'

    def cell(row: RunRow) -> str:
        why = _why(row["job"])
        note = f'<span class="row-note">{text(why)}</span>' if why else ""
        return f"{begin}{html.phase(row['job'].phase)}{note}</span></td>"

    return cell


def _why(job: Job) -> str:
    """Why the job waits or failed; empty if it does neither."""
    if waits := explanations.first(job):
        return waits
    return truncate(messages.of_job(job), _MOST_MESSAGE) if job.phase == JobPhase.FAILED and job.message else ""


def _values(row: RunRow) -> str:
    return "".join(
        f'<td data-label="{text(one["name"])}"><code>{text(truncate(one["value"], _MOST_VALUE))}</code></td>'
        for one in row["values"]
    )


def _metrics(row: RunRow) -> str:
    return "".join(map(_metric, row["metrics"]))


def _metric(one: Mapping[str, Any]) -> str:
    exact = f' title="{one["exact"]}"' if one["value"] else ""
    return f'<td class="number" data-label="{text(one["name"])}"{exact}>{one["value"] or html.NOTHING}</td>'


def _ended() -> Callable[[RunRow], str]:
    begin = f'<td data-label="{text(_("Finished"))}">'
    return lambda row: f"{begin}{html.moment(row['job'].finished_at)}</td>"


def _took() -> Callable[[RunRow], str]:
    begin = f'<td class="number" data-label="{text(_("Run time"))}">'
    return lambda row: f"{begin}{html.duration(row['job'].started_at, row['job'].finished_at)}</td>"
