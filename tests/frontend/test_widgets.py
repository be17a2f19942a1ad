"""Form controls have the markup of Django's templates, although Python builds them."""

from datetime import date
from typing import Any

import pytest
from django import forms
from django.forms.renderers import DjangoTemplates
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from hekla.pages.frame.fields import form_field
from hekla.pages.frame.widgets import ControlRenderer

_EVIL = "<b>\"'&"
_CHOICES = [("", "---"), ("a", _EVIL), (2, gettext_lazy("Name")), ("Group <1>", [("g", "One"), (True, "Two")])]
_ATTRIBUTES = {"id": "one", "required": True, "disabled": False, "maxlength": 10, "title": _EVIL}


@pytest.mark.parametrize(
    ("widget", "value"),
    [
        (forms.TextInput(), _EVIL),
        (forms.TextInput({"placeholder": SafeString("<i>")}), None),
        (forms.TextInput(), 0),
        (forms.NumberInput(), 12.5),
        (forms.EmailInput(), ""),
        (forms.URLInput(), "https://example.org?a=1&b=2"),
        (forms.PasswordInput(), "secret"),
        (forms.HiddenInput(), 7),
        (forms.DateInput({"type": "date"}), date(2026, 1, 2)),
        (forms.CheckboxInput(), True),
        (forms.CheckboxInput(), "other"),
        (forms.Textarea(), _EVIL),
        (forms.Textarea(), None),
        (forms.Select(choices=_CHOICES), "a"),
        (forms.Select(choices=_CHOICES), None),
        (forms.SelectMultiple(choices=_CHOICES), ["a", "g"]),
        (forms.NullBooleanSelect(), True),
        (forms.ClearableFileInput(), None),
    ],
)
def test_a_control_is_as_its_template_renders_it(widget: forms.Widget, value: object) -> None:
    facts: dict[str, Any] = {"name": "field <x>", "value": value, "attrs": _ATTRIBUTES}
    assert widget.render(**facts, renderer=ControlRenderer()) == widget.render(**facts, renderer=DjangoTemplates())


@pytest.mark.parametrize("kind", [forms.RadioSelect, forms.CheckboxSelectMultiple])
def test_one_of_several_is_as_its_template_renders_it(kind: type[forms.RadioSelect]) -> None:
    def tags(renderer: DjangoTemplates) -> list[str]:
        class Form(forms.Form):
            one = forms.MultipleChoiceField(choices=_CHOICES[:3], widget=kind)

        boxes = Form({"one": ["a"]}, renderer=renderer)["one"]
        return [str(box) for box in boxes] + [box.tag(wrap_label=True) for box in boxes] + [str(boxes)]

    assert tags(ControlRenderer()) == tags(DjangoTemplates())


def test_names_and_texts_of_a_field_are_no_markup() -> None:
    """A form that a template opens has fields named after files."""
    name = 'files.a"><b>'
    form = type("Form", (forms.Form,), {name: forms.CharField(label=_EVIL, help_text=_EVIL)})({})
    found = form_field(form[name], unit=_EVIL)
    assert "<b>" not in found
    assert "This field is required" in found
