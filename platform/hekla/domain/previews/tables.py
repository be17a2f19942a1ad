"""CSV and TSV as rows. Cells are text: a formula is shown as it is written."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from hekla.domain.previews.text import visible
from hekla.lib.text import truncate

DELIMITERS = {"csv": ",;\t", "tsv": "\t"}
"""By the end of the name: the signs that may separate cells."""
_MOST_ROWS, _MOST_COLUMNS, _LONGEST_CELL = 200, 50, 200


@dataclass(frozen=True, slots=True)
class CsvTable:
    """The first rows and columns of a table."""

    rows: Sequence[Sequence[str]]
    is_cut: bool


def rows(content: str, suffix: str, *, is_cut: bool) -> CsvTable | None:
    """The first 200 rows and 50 columns; None if the text is no table. `is_cut`: its last line may be incomplete."""
    if is_cut:
        content = content[: content.rfind("\n") + 1]
    first = content.partition("\n")[0]
    delimiter = max(DELIMITERS[suffix], key=first.count)
    found: list[list[str]] = []
    is_cut = False
    try:
        for row in csv.reader(io.StringIO(content, newline=""), delimiter=delimiter):
            if len(found) == _MOST_ROWS:
                return CsvTable(found, is_cut=True)
            is_cut = is_cut or len(row) > _MOST_COLUMNS or any(len(cell) > _LONGEST_CELL for cell in row)
            found.append([truncate(visible(cell[: _LONGEST_CELL + 1]), _LONGEST_CELL) for cell in row[:_MOST_COLUMNS]])
    except csv.Error:
        return None
    return CsvTable(found, is_cut) if found else None
