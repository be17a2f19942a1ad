"""The rows of a job's timeline as SVG: see `jobs/_gantt.html`, which has their scale and legend."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from markupsafe import escape as text

from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Job
from hekla.pages.frame import html

if TYPE_CHECKING:
    from hekla.apps.job_history.gantt import GanttBar, GanttRow

_GROUND = '<rect class="gantt-ground" x="0" y="0" width="1000" height="14" />'


def gantt_rows(job: Job, rows: Iterable["GanttRow"]) -> SafeString:
    """A row for the job itself, and one for each of these pods."""
    place = html.address("jobs:detail", job.uid)
    return mark_safe("".join(_of_pod(place, row) if row.pod_id else _of_job(row) for row in rows))


def _of_pod(place: str, row: "GanttRow") -> str:
    times = f" <small>#{row.attempts}</small>" if row.attempts > 1 else ""
    name = f'<a class="gantt-name" href="{place}pods/{row.pod_id}/">{text(row.name)}{times}</a>'
    return f'<li class="gantt-row">{name}{_picture(row)}{_outcome(row, row.outcome)}</li>'


def _of_job(row: "GanttRow") -> str:
    name = f'<span class="gantt-name">{text(_("The job"))}</span>'
    return f'<li class="gantt-row gantt-job">{name}{_picture(row)}{_outcome(row, labels.phase(row.look))}</li>'


def _picture(row: "GanttRow") -> str:
    bars = "".join(map(_bar, row.bars))
    head = '<svg viewBox="0 0 1000 14" preserveAspectRatio="none" role="img"'
    return f'{head} aria-label="{text(row.words)}">{_GROUND}{bars}</svg>'


def _bar(bar: "GanttBar") -> str:
    place = f'x="{bar.start}" y="0" width="{bar.width}" height="14"'
    return f'<rect class="gantt-{text(bar.kind)}" {place}><title>{text(bar.words)}</title></rect>'


def _outcome(row: "GanttRow", word: str) -> str:
    return f'<span class="gantt-outcome phase-{text(row.look)}">{text(word)}</span>'
