"""Filters and tags for people: amounts and reasons in words, and what a job is a part of."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from hekla.apps.flows import selectors as flows
from hekla.apps.flows.models import Flow
from hekla.apps.gallery import selectors as gallery
from hekla.apps.gallery.models import Use
from hekla.apps.jobs import endings, gantt_rows, job_rows, node_jobs, pieces, pod_rows, saying, wording
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.sentences import space_after
from hekla.domain.resources import Resources, format_quantity
from hekla.project.figures import Bar

register = template.Library()
register.simple_tag(pieces.icon)
register.simple_tag(pieces.queue_bar)
register.simple_tag(pieces.phase, name="phase_badge")
register.simple_tag(pieces.moment)
register.simple_tag(pieces.duration)
register.simple_tag(pieces.address)
register.simple_tag(pieces.badge)
register.simple_tag(pieces.column_head)
register.simple_tag(job_rows.job_rows)
register.simple_tag(pod_rows.pod_rows)
register.simple_tag(gantt_rows.gantt_rows)
register.simple_tag(node_jobs.node_jobs)
register.filter(space_after)


@register.filter
def amount(value: float, name: str) -> str:
    """An amount in internal units as people write it (`250m`, `4Gi`)."""
    return format_quantity(name, value)


@register.filter
def in_words(quantities: Mapping[str, str]) -> str:
    """Kubernetes quantities as one phrase: `2 CPU, 4 GiB`."""
    return wording.amounts(Resources.parse(quantities))


@register.filter
def in_amounts(resources: Resources) -> str:
    """Amounts in internal units, likewise."""
    return wording.amounts(resources)


@register.filter
def phase_word(value: str) -> str:
    """The word of a phase or a state."""
    return wording.phase(value)


@register.filter
def message_of(job: Job) -> str:
    """Why a job stands as it does, in the reader's language."""
    return saying.of_job(job)


@register.filter
def detail_of(pod: Pod) -> str:
    """What is said of an attempt's end beyond its exit code."""
    return endings.detail(pod.reason, pod.message)


@register.filter
def stop_reason_of(pod: Pod) -> str:
    """Why an attempt was asked to end."""
    return endings.stop_reason(pod.stop_reason)


@register.filter
def exit_of(pod: Pod) -> str:
    """How an attempt's process ended, with all that its backend knows."""
    return endings.exit_of(pod)


@register.filter
def reason_in_words(reason: Mapping[str, Any]) -> str:
    """One of the engine's reasons as a sentence."""
    return wording.reason(reason)


@register.filter
def entry(mapping: Mapping[str, Any], key: object) -> Any:  # noqa: ANN401
    """The value of a key that is itself a variable; empty where it is absent."""
    return mapping.get(str(key), "") if hasattr(mapping, "get") else ""


@register.simple_tag
def bar_lines(bars: Iterable[Bar]) -> SafeString:
    """How much of each resource is used, each as words and a bar."""
    return format_html_join("", '<span class="muted number">{}</span>{}', ((bar.words, _drawn(bar)) for bar in bars))


def _drawn(bar: Bar) -> SafeString:
    parts = (bar.capacity, bar.used, bar.borrowed, bar.lent, bar.guarantee, bar.deserved)
    return pieces.queue_bar(*parts, words=bar.said)


@register.simple_tag
def begun_with(job: Job) -> Use | None:
    """The version of a template with which a job was begun."""
    return gallery.use_of(job)


@register.simple_tag
def flow_of(job: Job) -> Flow | None:
    """The flow that a job is a step of."""
    return flows.flow_of(job)
