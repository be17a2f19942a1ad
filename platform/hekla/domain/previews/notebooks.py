"""Jupyter notebooks as cells of text. Of their outputs, only plain texts and bitmap images are shown: HTML, SVG,
JavaScript and widgets would be code of the job in the reader's browser.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hekla.domain.previews import images
from hekla.domain.previews.preview import CellOutput, NotebookCell
from hekla.domain.previews.text import visible
from hekla.lib.text import strip_control_codes, truncate

_KINDS = frozenset({"code", "markdown", "raw"})
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_MOST_CELLS, _MOST_OUTPUTS = 200, 20
_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Notebook:
    """The first cells of a notebook."""

    cells: Sequence[NotebookCell]
    is_cut: bool


def cells(document: bytes) -> Notebook | None:
    """The first 200 cells, each with its first 20 outputs; None if the document is no notebook of version 4."""
    try:
        found = json.loads(document, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        return None
    made = [_cell(one) for one in found["cells"][:_MOST_CELLS] if isinstance(one, dict)]
    return Notebook(made, is_cut=len(found["cells"]) > _MOST_CELLS)


def _cell(cell: Mapping[str, object]) -> NotebookCell:
    kind, outputs = cell.get("cell_type"), cell.get("outputs")
    first = outputs[:_MOST_OUTPUTS] if isinstance(outputs, list) else []
    made = [output for one in first if isinstance(one, dict) for output in _outputs(one)]
    return NotebookCell(kind if isinstance(kind, str) and kind in _KINDS else "raw", _text(cell.get("source")), made)


def _outputs(output: Mapping[str, object]) -> Iterator[CellOutput]:
    """An image, else the text, of one output."""
    data = output.get("data")
    bundle = data if isinstance(data, dict) else {}
    for media_type in _IMAGES:
        if (image := _image(bundle.get(media_type))) is not None:
            yield image
            return
    text = output.get("text", output.get("traceback", bundle.get("text/plain")))
    if made := _text(text, between="\n" if "traceback" in output else ""):
        yield CellOutput(text=made)


def _image(value: object) -> CellOutput | None:
    """An image whose bytes prove that it is one."""
    try:
        data = base64.b64decode("".join(_joined(value).split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    media_type = images.media_type(data)
    return CellOutput(media_type=media_type, image=base64.b64encode(data).decode()) if media_type else None


def _text(value: object, *, between: str = "") -> str:
    return truncate(visible(strip_control_codes(_joined(value, between)[:_LONGEST])), _LONGEST)


def _joined(value: object, between: str = "") -> str:
    """A text of a notebook, which may be a list of its lines."""
    if isinstance(value, list):
        return between.join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""
