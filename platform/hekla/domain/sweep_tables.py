"""The parameters of a sweep as a table: a column for each parameter, with its name in the first line, and a row a job.

The text is CSV, or what a spreadsheet copies: columns are separated by tabs, semicolons or commas.
"""

import csv
import io

from hekla.domain.sweeps import MAX_JOBS, MAX_PARAMETERS
from hekla.domain.translation import translate
from hekla.domain.validation import quote

MAX_BYTES = 1024 * 1024
_SEPARATORS = "\t;,"


def parse_table(text: str) -> dict[str, list[str]]:
    """The values of each parameter, in the order of the rows. Raises ValueError with the number of the wrong row."""
    if len(text) > MAX_BYTES:
        raise ValueError(translate("The table is larger than 1 MiB."))
    names, *rows = _rows(text) or [[]]
    if not any(names):
        raise ValueError(translate("The first line must have the names of the parameters."))
    if len(names) > MAX_PARAMETERS:
        raise ValueError(
            translate("The table has {count} columns. The limit is {most}.", count=len(names), most=MAX_PARAMETERS)
        )
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(translate("The column {name} is there twice.", name=quote(repeated[0])))
    if not rows:
        raise ValueError(translate("The table has no row below the names of its columns."))
    if len(rows) > MAX_JOBS:
        raise ValueError(
            translate("These are {size:,} jobs. The limit is {most:,} per submission.", size=len(rows), most=MAX_JOBS)
        )
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            counts = {"number": number, "count": len(row), "columns": len(names)}
            raise ValueError(translate("Row {number} has {count} values. The table has {columns} columns.", **counts))
    return {name: [row[column] for row in rows] for column, name in enumerate(names)}


def _rows(text: str) -> list[list[str]]:
    """The cells of all lines that are not empty."""
    first = text.lstrip("\ufeff\r\n").partition("\n")[0]
    separator = next((mark for mark in _SEPARATORS if mark in first), ",")
    lines = io.StringIO(text.removeprefix("\ufeff"), newline="")
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator, strict=True)]
    except csv.Error as error:
        raise ValueError(translate("The table cannot be read. Check its quotation marks.")) from error
    return [row for row in rows if any(row)]
