"""Shared code of forms: errors of services shown at their fields, and amounts as people type them."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain.errors import HeklaError, Invalid, Refused
from hekla.domain.resources import InvalidQuantity, format_quantity, parse_quantity

_MAX_PROBLEMS = 3  # problems shown per field: nonsense input would give one for each word
# The error of an invalid name that is used in URLs, for `error_messages`.
NAME_ERRORS = {"invalid": gettext_lazy("Use only letters, digits, hyphens and underscores.")}
RESERVED = frozenset({"new", "switch", "nodes", "policy", "environments", "edit"})


def attach(form: forms.BaseForm, error: HeklaError) -> None:
    """Show the error of a service in the form: each problem at its field, the rest above."""
    if isinstance(error, Invalid):
        for problem in error.problems:
            _add(form, problem.path, problem.message)
    else:
        _add(form, error.path if isinstance(error, Refused) else "", error.message)


def _add(form: forms.BaseForm, path: str, message: str) -> None:
    if path in form.fields:
        form.add_error(path, message)
    else:
        form.add_error(None, _(": ").join(filter(None, (path, message))))


def form_page(request: HttpRequest, form: forms.BaseForm, *, title: str, submit: str, cancel: str) -> HttpResponse:
    """A page with only a form. `submit`: the label of its button; `cancel`: the URL of its cancel link."""
    return render(request, "form_page.html", {"form": form, "title": title, "submit": submit, "cancel": cancel})


def refuse_reserved(name: str) -> str:
    """The name, unless our URLs use it as a word of their own. Raises ValidationError."""
    if name in RESERVED:
        raise forms.ValidationError(_("“%s” is reserved in addresses. Choose another name.") % name)
    return name


class QuantitiesField(forms.CharField):
    """Amounts by resource, typed as `cpu=4, memory=8Gi`; cleans to Kubernetes quantities."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        kwargs.setdefault("help_text", gettext_lazy("For example: cpu=4, memory=8Gi. Leave empty for no limit."))
        super().__init__(required=False, **kwargs)

    def prepare_value(self, value: object) -> object:
        """Stored quantities as text for the field."""
        if isinstance(value, Mapping):
            return format_amounts(value)
        return value

    def clean(self, value: str | None) -> dict[str, str]:
        """The amounts by resource. Raises ValidationError with the first problems."""
        return parse_amounts(super().clean(value) or "")


def parse_amounts(text: str) -> dict[str, str]:
    """The amounts by resource in `cpu=4, memory=8Gi`. Raises ValidationError with the first problems."""
    found, wrong = {}, []
    for part in re.split(r"[,\s]+", text.strip()) if text.strip() else []:
        name, equals, amount = part.partition("=")
        try:
            found[name] = format_quantity(name, parse_quantity(name, amount))
        except InvalidQuantity as error:
            wrong.append(str(error) if equals else _("“%s” is not in the form name=amount.") % part[:40])
    if wrong:
        raise forms.ValidationError(wrong[:_MAX_PROBLEMS])
    return found


def format_amounts(amounts: Mapping[str, object]) -> str:
    """The text that `parse_amounts` reads."""
    return ", ".join(f"{name}={amount}" for name, amount in amounts.items())
