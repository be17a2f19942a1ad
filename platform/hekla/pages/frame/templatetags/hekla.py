"""Filters and tags for all pages: small pieces of markup, and amounts."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.forms import BoundField
from django.utils.safestring import SafeString

from hekla.apps.sentences import space_after, translated
from hekla.domain.resources import format_quantity
from hekla.pages.frame import buttons, html, quick_components, quick_tags, quick_variables
from hekla.pages.frame.fields import form_field
from hekla.pages.frame.tables import ListTable
from hekla.pages.frame.translate_tag import replace_tag

for steps in (quick_components, quick_tags, quick_variables):
    steps.replace_steps()
replace_tag()
register = template.Library()
register.simple_tag(html.icon)
register.simple_tag(html.logo)
register.simple_tag(html.languages)
register.simple_tag(html.queue_bar)
register.simple_tag(html.phase, name="phase_badge")
register.simple_tag(html.moment)
register.simple_tag(html.duration)
register.simple_tag(html.address)
register.simple_tag(html.badge)
register.simple_tag(html.event)
register.simple_tag(html.column_head)
register.simple_tag(form_field)
register.simple_tag(buttons.button)
register.simple_tag(buttons.menu_item)
register.simple_tag(buttons.post_button, takes_context=True)
register.filter(space_after)
register.filter("sentences", translated)


@register.filter
def amount(value: float, name: str) -> str:
    """An amount in internal units as a quantity (`250m`, `4Gi`)."""
    return format_quantity(name, value)


@register.filter
def entry(mapping: Mapping[str, Any], key: object) -> Any:  # noqa: ANN401
    """The value of a variable key; empty if absent."""
    return mapping.get(str(key), "") if hasattr(mapping, "get") else ""


@register.filter
def hidden_initial(field: BoundField) -> SafeString | str:
    """The stored value that an edit form carries, for a field whose template prints its choices one by one."""
    return field.as_hidden(only_initial=True) if field.field.show_hidden_initial else ""


@register.simple_tag(takes_context=True)
def table_body(context: template.Context, table: ListTable, records: Iterable[Any]) -> SafeString:
    """The rows of a list. The context has the CSRF token for their forms."""
    return table.body(records, context)
