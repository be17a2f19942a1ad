"""Reads tables of people from spreadsheets: detects the encoding, the separator and the columns."""

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.apps.invitations import extras
from hekla.domain.errors import Invalid, Problem

MOST_BYTES = 256 * 1024
MOST_ROWS = 200
COLUMNS = {
    "username": {"username", "user", "login", "account", "用户名", "账号"},
    "email": {"email", "mail", "emailaddress", "邮箱", "电子邮件", "电子邮件地址"},
    "name": {"name", "fullname", "displayname", "姓名", "名字"},
    "role": {"role", "角色"},
    "tenant": {"tenant", "租户"},
    "department": {"department", "部门"},
}
_SEPARATORS = ",;\t"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class InvitationRow:
    """One row: its line number, and its cells by column."""

    line: int
    cells: dict[str, str]
    has_too_many: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table. `unused`: the names of unknown columns."""

    rows: Sequence[InvitationRow]
    unused: Sequence[str]


def decoded(data: bytes) -> str:
    """The text of a file in UTF-8, UTF-16 or GB18030. Raises Invalid, also above MOST_BYTES."""
    if len(data) > MOST_BYTES:
        raise _wrong(_("The file is too large. The limit is %(most)d KiB.") % {"most": MOST_BYTES // 1024})
    for encoding in ("utf-16",) if data.startswith(_UTF_16) else ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise _wrong(_("The file is not UTF-8 or GB18030 text. Save it as CSV."))


def read(text: str) -> Table:
    """The rows of a table; its first line has the column names. Raises Invalid."""
    text = text.removeprefix("\ufeff")
    if "\0" in text or len(text.encode(errors="surrogatepass")) > MOST_BYTES:
        raise _wrong(_("Not a text table, or larger than %(most)d KiB.") % {"most": MOST_BYTES // 1024})
    try:
        lines = list(_lines(text))
    except csv.Error as error:
        raise _wrong(_("Invalid CSV: %(error)s.") % {"error": error}) from error
    if len(lines) > MOST_ROWS + 1:
        raise _wrong(_("The table has more than %(most)d rows. Import it in parts.") % {"most": MOST_ROWS})
    head = [known(name) for name in lines[0][1]] if lines else []
    _check(head)
    unused = [name for name, column in zip(lines[0][1], head, strict=True) if name and not column]
    return Table([_row(line, cells, head) for line, cells in lines[1:]], unused)


def known(name: str) -> str:
    """The column for a name in the first row, in any accepted spelling; empty if unknown."""
    plain = "".join(letter for letter in name.lower() if letter.isalnum())
    columns = COLUMNS | extras.spellings()
    return next((column for column, names in columns.items() if plain in names), "")


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that is not empty, with its number."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), skipinitialspace=True, strict=True)
    for cells in reader:
        stripped = [cell.strip() for cell in cells]
        if any(stripped):
            yield reader.line_num, stripped


def _separator(text: str) -> str:
    """The separator that gives the most known columns in the first line. `csv.Sniffer` would also use the rows, and
    names and sentences in them contain commas.
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    return max(_SEPARATORS, key=lambda mark: sum(bool(known(name)) for name in first.split(mark)))


def _check(head: Sequence[str]) -> None:
    columns = [column for column in head if column]
    if not {"username", "email"} & set(columns):
        sentence = _(
            "The first row must have the column names. Required: username or email. Optional: name, role, tenant."
        )
        raise _wrong(sentence)
    if twice := next((column for column in columns if columns.count(column) > 1), ""):
        raise _wrong(_("Duplicate column “%(column)s” in the first row.") % {"column": twice})


def _row(line: int, cells: Sequence[str], head: Sequence[str]) -> InvitationRow:
    by_column = {column: cell for column, cell in zip(head, cells, strict=False) if column}
    return InvitationRow(
        line, {column: "" for column in head if column} | by_column, has_too_many=any(cells[len(head) :])
    )


def _wrong(sentence: str) -> Invalid:
    return Invalid([Problem("text", sentence)])
