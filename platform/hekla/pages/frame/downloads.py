"""Files that pages offer for download."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from hekla.lib.text import show_bidi_controls

ResponseT = TypeVar("ResponseT", bound=HttpResponseBase)
_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def attach(response: ResponseT, name: str) -> ResponseT:
    """The response as a file of this name. Bidirectional controls are shown, or the file could look harmless."""
    response.headers["Content-Disposition"] = content_disposition_header(True, show_bidi_controls(name))
    return response


def manifest(text: str, name: str) -> HttpResponse:
    """A manifest as a YAML download. `name`: the file name without its extension."""
    return attach(HttpResponse(text, content_type="application/yaml; charset=utf-8"), f"{name}.yaml")


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
