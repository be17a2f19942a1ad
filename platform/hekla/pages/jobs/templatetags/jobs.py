"""Filters and tags for jobs: reasons in words, rows of long lists, and the legend of ribbons."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django import template
from django.utils.translation import gettext as _

from hekla.apps.job_history import card_labels, endings, explanations, labels, messages
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.resources import Resources
from hekla.pages.jobs import gantt_rows, job_rows, node_jobs, pod_rows

if TYPE_CHECKING:
    from hekla.apps.job_history.ribbon import Cell

register = template.Library()
register.simple_tag(job_rows.job_rows)
register.simple_tag(pod_rows.pod_rows)
register.simple_tag(gantt_rows.gantt_rows)
register.simple_tag(node_jobs.node_jobs)
register.filter("card_names", card_labels.cards)
register.filter("card_details", card_labels.details)


@register.filter
def in_words(quantities: Mapping[str, str]) -> str:
    """Kubernetes quantities as a phrase: `2 CPU, 4 GiB`."""
    return labels.amounts(Resources.parse(quantities))


@register.filter
def in_amounts(resources: Resources) -> str:
    """Amounts in internal units as a phrase: `2 CPU, 4 GiB`. A line breaks only between them."""
    comma = _(", ")
    return comma.join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in labels.amounts(resources).split(comma))


@register.filter
def phase_word(value: str) -> str:
    """The label of a phase or state."""
    return labels.phase(value)


@register.filter
def message_of(job: Job) -> str:
    """Why the job is in its state, in the reader's language."""
    return messages.of_job(job)


@register.filter
def detail_of(pod: Pod) -> str:
    """Details of a pod's end besides its exit code."""
    return endings.detail(pod.reason, pod.message)


@register.filter
def stop_reason_of(pod: Pod) -> str:
    """Why a pod was stopped."""
    return endings.stop_reason(pod.stop_reason)


@register.filter
def exit_of(pod: Pod) -> str:
    """How a pod's process ended, with everything that the backend reports."""
    return endings.exit_of(pod)


@register.filter
def pending_reason(job: Job) -> str:
    """Why the job waits, in one sentence; empty if it does not wait."""
    return explanations.first(job)


@register.filter
def kinds_of(cells: Iterable["Cell | Mapping[str, Any]"]) -> list[str]:
    """The kinds of a ribbon's cells, each once, in order of appearance."""
    return list(dict.fromkeys(str(cell["kind"]) if isinstance(cell, Mapping) else cell.kind for cell in cells))
