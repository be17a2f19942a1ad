"""Filters and tags that every page may use: small pieces of markup, and amounts."""

from collections.abc import Mapping
from typing import Any

from django import template

from hekla.apps.sentences import space_after
from hekla.domain.resources import format_quantity
from hekla.pages.frame import html

register = template.Library()
register.simple_tag(html.icon)
register.simple_tag(html.queue_bar)
register.simple_tag(html.phase, name="phase_badge")
register.simple_tag(html.moment)
register.simple_tag(html.duration)
register.simple_tag(html.address)
register.simple_tag(html.badge)
register.simple_tag(html.column_head)
register.filter(space_after)


@register.filter
def amount(value: float, name: str) -> str:
    """An amount in internal units as people write it (`250m`, `4Gi`)."""
    return format_quantity(name, value)


@register.filter
def entry(mapping: Mapping[str, Any], key: object) -> Any:  # noqa: ANN401
    """The value of a key that is itself a variable; empty where it is absent."""
    return mapping.get(str(key), "") if hasattr(mapping, "get") else ""
