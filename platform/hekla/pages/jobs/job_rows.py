"""The rows of a list of jobs: the cells of its columns, and the actions on a job."""

from collections.abc import Callable, Iterable, Sequence

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from markupsafe import escape as text

from hekla.apps.demonstrations.names import unmarked
from hekla.apps.jobs.models import Job
from hekla.pages.frame import html
from hekla.pages.jobs.columns import Column, JobTableRow

_KEYS = {"AbortJob": "a", "ResumeJob": "r", "RestartJob": "r"}
"""The keys that press the buttons of the current row."""


def job_rows(
    rows: Iterable[JobTableRow], columns: Sequence[Column], *, choosable: object, in_line: object
) -> SafeString:
    """The rows of the table in `jobs/_table.html`. `choosable`: with checkboxes and actions; `in_line`: with queue
    positions.
    """
    makers = [_head(), *(_cell(column) for column in columns)]
    if in_line:
        makers.insert(0, _place())
    if choosable:
        makers = [_choice(), *makers, _actions()]
    return SafeString(
        "".join(f'<tr id="row-{row["job"].uid}">{"".join(make(row) for make in makers)}</tr>' for row in rows)
    )


def _head() -> Callable[[JobTableRow], str]:
    """The name, and whose the job is. What is special about it is not cut off, as that may be."""
    explanation = text(_("Its nodes and pods are simulated"))
    simulated = f'<span class="row-mark" title="{explanation}">{text(_("simulated"))}</span>'
    deleted = text(_("deleted"))

    def head(row: JobTableRow) -> str:
        job: Job = row["job"]
        marks = simulated if job.cluster.is_simulated else ""
        if job.deleted_at:
            marks += f'<span class="row-mark">{deleted} {html.moment(job.deleted_at)}</span>'
        name, whose = text(job.name), f"{job.owner} · {job.tenant}"
        short = f"{unmarked(str(job.owner))} · {unmarked(str(job.tenant))}" if job.cluster.is_simulated else whose
        link = f'<a href="{row["place"]}">{name}</a>'
        return f'<th scope="row">{link}{marks}<span class="row-note" title="{text(whose)}">{text(short)}</span></th>'

    return head


def _cell(column: Column) -> Callable[[JobTableRow], str]:
    show, aligned = column.cell, ' class="number"' if column.number else ""
    begin = f'<td data-label="{text(column.label)}"{aligned}>'

    def cell(row: JobTableRow) -> str:
        content = show(row)
        return f"{begin}{content if type(content) is SafeString else text(content)}</td>"

    return cell


def _place() -> Callable[[JobTableRow], str]:
    label = text(_("Position"))
    return lambda row: f'<td class="number" data-label="{label}">{text(row["turn"])}</td>'


def _choice() -> Callable[[JobTableRow], str]:
    choose = text(_("Select"))

    def choice(row: JobTableRow) -> str:
        job = row["job"]
        box = f'<input type="checkbox" name="uid" value="{job.uid}" form="jobs-act"'
        return f'<td class="choice-cell">{box} aria-label="{choose} {text(job.name)}"></td>'

    return choice


def _actions() -> Callable[[JobTableRow], str]:
    """The buttons of the job's actions, and a link that submits a copy."""
    again, form, picture = text(_("Edit and run again")), reverse("jobs:submit"), html.icon("clone")

    def actions(row: JobTableRow) -> str:
        job = row["job"]
        words = f'title="{again} (c)" aria-label="{again} {text(job.name)}" data-key="c"'
        link = f'<a class="button button-quiet button-small" href="{form}?clone={job.uid}" {words}>{picture}</a>'
        buttons = "".join(_button(row, *action) for action in row["actions"])
        return f'<td><div class="row-actions">{buttons}{link}</div></td>'

    return actions


def _button(row: JobTableRow, command: str, label: str, picture: str) -> str:
    job = row["job"]
    where = f'form="one-{command}" name="uid" value="{job.uid}" data-key="{_KEYS[command]}"'
    words = f'title="{text(label)} ({_KEYS[command]})" aria-label="{text(label)} {text(job.name)}"'
    return f'<button class="button button-quiet button-small" {where} {words}>{html.icon(picture)}</button>'
