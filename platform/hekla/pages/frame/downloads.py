"""Files that pages offer for download."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.http import HttpResponse

_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def manifest(text: str, name: str) -> HttpResponse:
    """A manifest as a YAML download. `name`: the file name without its extension."""
    response = HttpResponse(text, content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.yaml"'
    return response


def cell(value: Any) -> str:  # noqa: ANN401  (a number, an instant, a word)
    """A cell of a spreadsheet as text, with a quote before text that a spreadsheet would run as a formula."""
    if isinstance(value, int):
        return str(value)
    text = value.isoformat() if isinstance(value, datetime) else "" if value is None else str(value)
    return f"'{text}" if text.startswith(_STARTS_A_FORMULA) else text


def csv_text(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as CSV."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()
