"""Filters and tags for people: amounts and reasons in words, and what a job is a part of."""

from collections.abc import Mapping
from typing import Any

from django import template

from hekla.apps.flows import selectors as flows
from hekla.apps.flows.models import Flow
from hekla.apps.jobs import endings, saying, wording
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.resources import Resources, format_quantity

register = template.Library()


@register.filter
def amount(value: float, name: str) -> str:
    """An amount in internal units as people write it (`250m`, `4Gi`)."""
    return format_quantity(name, value)


@register.filter
def in_words(quantities: Mapping[str, str]) -> str:
    """Kubernetes quantities as one phrase: `2 CPU, 4 GiB`."""
    return wording.amounts(Resources.parse(quantities))


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
def flow_of(job: Job) -> Flow | None:
    """The flow that a job is a step of."""
    return flows.flow_of(job)
