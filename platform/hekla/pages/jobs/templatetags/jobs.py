"""Filters and tags for jobs: reasons in words, rows of long lists, and the origin of a job."""

from collections.abc import Mapping

from django import template

from hekla.apps.flows import selectors as flows
from hekla.apps.flows.models import Flow
from hekla.apps.gallery import selectors as gallery
from hekla.apps.gallery.models import TemplateUse
from hekla.apps.job_history import card_labels, endings, explanations, labels, messages
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.resources import Resources
from hekla.pages.jobs import gantt_rows, job_rows, node_jobs, pod_rows

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
    """Amounts in internal units as a phrase: `2 CPU, 4 GiB`."""
    return labels.amounts(resources)


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


@register.simple_tag
def template_use(job: Job) -> TemplateUse | None:
    """The template version that the job was submitted from, or None."""
    return gallery.use_of(job)


@register.simple_tag
def flow_of(job: Job) -> Flow | None:
    """The flow that the job is a step of, or None."""
    return flows.flow_of(job)
