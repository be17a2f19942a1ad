"""Fields of the form of a queue: lists of node groups, limits in node groups, and card limits by model."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from hekla.apps.forms import format_amounts, parse_amounts

_MOST = 100
"""Lines and names that are read; the service refuses fewer."""
_DIGITS = 9


class NamesField(forms.CharField):
    """Names, typed with commas between them."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(required=False, **kwargs)

    def prepare_value(self, value: object) -> object:
        """Stored names as text for the field."""
        return ", ".join(value) if isinstance(value, list) else value

    def clean(self, value: str | None) -> list[str]:
        """The names, each once, in order."""
        text = super().clean(value) or ""
        return list(dict.fromkeys(text.replace(",", " ").split()[:_MOST]))


class GroupLimitsField(forms.CharField):
    """Limits in node groups, typed as a line `a100: cpu=4, memory=8Gi` for each group."""

    widget = forms.Textarea(attrs={"rows": 2})

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(required=False, **kwargs)

    def prepare_value(self, value: object) -> object:
        """Stored limits as text for the field."""
        if isinstance(value, Mapping):
            return "\n".join(f"{group}: {format_amounts(amounts)}" for group, amounts in value.items())
        return value

    def clean(self, value: str | None) -> dict[str, dict[str, str]]:
        """The limits by group. Raises ValidationError for the first line that is wrong."""
        lines = [line.strip() for line in (super().clean(value) or "").splitlines() if line.strip()][:_MOST]
        found: dict[str, dict[str, str]] = {}
        for line in lines:
            group, colon, amounts = line.partition(":")
            if not colon or not amounts.strip():
                raise ValidationError(_("“%s” is not in the form group: resource=amount.") % line[:40])
            if group.strip() in found:
                raise ValidationError(_("“%s” has two lines.") % group.strip()[:40])
            found[group.strip()] = parse_amounts(amounts)
        return found


class CardQuotaField(forms.CharField):
    """Numbers of cards by model, typed as `NVIDIA-A100=8, NVIDIA-H100=16`."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(required=False, **kwargs)

    def prepare_value(self, value: object) -> object:
        """Stored limits as text for the field."""
        return format_amounts(value) if isinstance(value, Mapping) else value

    def clean(self, value: str | None) -> dict[str, int]:
        """The limits by model. Raises ValidationError for the first part that is wrong."""
        found: dict[str, int] = {}
        for part in (super().clean(value) or "").replace(",", " ").split()[:_MOST]:
            model, equals, count = part.rpartition("=")
            if not equals or not (count.isascii() and count.isdecimal()) or len(count) > _DIGITS:
                raise ValidationError(_("“%s” is not in the form model=number.") % part[:40])
            found[model] = int(count)
        return found
