"""The result of a preview."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class PreviewKind(StrEnum):
    """How a file is shown. text: lines. table: rows of cells. notebook: cells with outputs. binary: its first bytes."""

    TEXT = "text"
    TABLE = "table"
    NOTEBOOK = "notebook"
    IMAGE = "image"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class CellOutput:
    """An output of a notebook's cell: a text, or an image in base64 with its media type."""

    text: str = ""
    media_type: str = ""
    image: str = ""


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell. `kind`: code, markdown or raw; its source is text in each case."""

    kind: str
    source: str
    outputs: Sequence[CellOutput] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """What is shown of a file; the fields of other kinds are empty. `is_cut`: the file has more than is shown.

    An image has no content here: it is too large to be shown if `is_cut`, else it is read on its own.
    """

    kind: PreviewKind
    encoding: str = ""
    lines: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    cells: Sequence[NotebookCell] = ()
    media_type: str = ""
    hexdump: Sequence[str] = ()
    is_cut: bool = False
