"""Choices of which there are hundreds."""

from typing import Any

from django import forms
from django.forms.renderers import BaseRenderer
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


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
        options = format_html_join(
            "",
            '<option value="{}"{}>{}</option>',
            ((key, SafeString(" selected") if str(key) in chosen else "", label) for key, label in self.choices),
        )
        own = flatatt(self.build_attrs(self.attrs, {"name": name, **(attrs or {})}))
        return format_html("<select{}>{}</select>", own, options)


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
        boxes = format_html_join(
            "",
            '<div><label for="{0}_{1}"><input{2} value="{3}" id="{0}_{1}"{4}> {5}</label></div>',
            (
                (group, number, common, key, SafeString(" checked") if str(key) in chosen else "", label)
                for number, (key, label) in enumerate(self.choices)
            ),
        )
        return format_html('<div id="{}">{}</div>', group, boxes)
