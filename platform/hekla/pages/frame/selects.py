"""Choices of which there are hundreds."""

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

from django import forms
from django.forms.renderers import BaseRenderer
from django.forms.utils import flatatt
from django.utils.html import format_html
from django.utils.safestring import SafeString

from hekla.pages.frame.html import text


class LongSelect(forms.Select):
    """A choice without groups. Its options are no templates: hundreds of those take longer than the rest of a page."""

    def render(
        self,
        name: str,
        value: Any,  # noqa: ANN401  (of any field)
        attrs: dict[str, Any] | None = None,
        renderer: BaseRenderer | None = None,  # noqa: ARG002
    ) -> SafeString:
        chosen = {str(one) for one in self.format_value(value)}
        own = flatatt(self.build_attrs(self.attrs, {"name": name, **(attrs or {})}))
        return format_html("<select{}>{}</select>", own, options(self.choices, chosen))


def options(choices: Iterable[tuple[object, object]], chosen: Collection[str]) -> SafeString:
    """The options of these values and labels. `chosen`: the selected values."""
    texts = [(str(key), str(label)) for key, label in choices]
    return SafeString("".join([option(key, label, key in chosen) for key, label in texts]))


@lru_cache(maxsize=8192)
def option(key: str, label: str, is_chosen: bool = False) -> str:
    """An option. Cached, since the same hundreds are on many pages."""
    return f'<option value="{text(key)}"{" selected" if is_chosen else ""}>{text(label)}</option>'


class ManyCheckboxes(forms.CheckboxSelectMultiple):
    """Several choices of many, without groups. Its checkboxes are no templates, as the options of `LongSelect`."""

    def render(
        self,
        name: str,
        value: Any,  # noqa: ANN401  (of any field)
        attrs: dict[str, Any] | None = None,
        renderer: BaseRenderer | None = None,  # noqa: ARG002
    ) -> SafeString:
        chosen = {str(one) for one in self.format_value(value)}
        own = self.build_attrs(self.attrs, attrs)
        group = own.pop("id", name)
        common = flatatt({"type": "checkbox", "name": name, **own})
        boxes = (
            f'<div><label for="{group}_{number}"><input{common} value="{text(key)}" id="{group}_{number}"'
            f"{' checked' if key in chosen else ''}> {text(label)}</label></div>"
            for number, (key, label) in enumerate((str(key), str(label)) for key, label in self.choices)
        )
        return format_html('<div id="{}">{}</div>', group, SafeString("".join(boxes)))
