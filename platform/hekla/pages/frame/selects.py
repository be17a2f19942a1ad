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
