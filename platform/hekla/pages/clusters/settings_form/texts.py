"""Values of a configuration as the text of a form's field, and back."""

import json
import math
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from hekla.pages.clusters.settings_form.fields import FieldKind, SettingField


def text_of(field: SettingField, value: Any) -> Any:  # noqa: ANN401  (any JSON; what the widget takes)
    """The value as the widget of the field takes it."""
    if field.shape is FieldKind.FLAG:
        return bool(value)
    if field.shape is FieldKind.CHOICES:
        return [str(one) for one in value] if isinstance(value, list) else []
    if value is None:
        return ""
    if field.shape is FieldKind.LINES and isinstance(value, list):
        return "\n".join(str(one) for one in value)
    if field.shape is FieldKind.PAIRS and isinstance(value, Mapping):
        return "\n".join(f"{name}={one}" for name, one in value.items())
    return _document(value) if field.shape is FieldKind.JSON or isinstance(value, dict | list) else str(value)


def _document(value: Any) -> str:  # noqa: ANN401  (any JSON)
    return json.dumps(value, indent=2, ensure_ascii=False) if value else ""


def value_of(field: SettingField, text: Any) -> Any:  # noqa: ANN401  (any JSON)
    """The value of an entry; that of an empty field without one. Raises ValidationError."""
    if field.shape in (FieldKind.FLAG, FieldKind.CHOICES):
        return text
    if not str(text).strip():
        return field.empty
    return _READERS.get(field.shape, str)(str(text).replace("\r\n", "\n").strip("\n"))


def _lines(text: str) -> list[Any]:
    return [line for line in map(str.strip, text.split("\n")) if line]


def _pairs(text: str) -> dict[str, str]:
    """Names with values, one pair per line, or several with commas between them. Raises ValidationError."""
    found: dict[str, str] = {}
    for line in _lines(text):
        for pair in _pairs_in(line):
            name, equals, value = pair.partition("=")
            if not equals or not name.strip():
                raise forms.ValidationError(_("Write one name=value per line. This line has none: %s") % pair[:80])
            if name.strip() in found:
                raise forms.ValidationError(_("The name %s occurs twice.") % name.strip()[:80])
            found[name.strip()] = value.strip()
    return found


def _pairs_in(line: str) -> list[str]:
    """The pairs of a line. A value may have signs of both kinds: `options=a=1,b=2` is one pair."""
    pairs = [pair for pair in map(str.strip, line.split(",")) if pair]
    return pairs if all(pair.count("=") == 1 for pair in pairs) else [line]


def _json(text: str) -> Any:  # noqa: ANN401  (any JSON)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise forms.ValidationError(_("Enter a valid JSON document.")) from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise forms.ValidationError(_("Enter a whole number.")) from None


def _number(text: str) -> float | int:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise forms.ValidationError(_("Enter a number."))
    return int(found) if found.is_integer() and abs(found) < 2**53 else found


_READERS = {
    FieldKind.LINES: _lines,
    FieldKind.PAIRS: _pairs,
    FieldKind.JSON: _json,
    FieldKind.WHOLE: _whole,
    FieldKind.NUMBER: _number,
}
