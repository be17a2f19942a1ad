"""A report as PDF, drawn with ReportLab.

Latin text is in Helvetica and all other text in STSong-Light: both are fonts that every PDF reader brings or replaces,
so no font must be installed here, and the text can be searched and copied. ReportLab is imported with the first
report, because that takes a while.
"""

import io
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from hekla.apps.reports.contents import ReportContents, ReportFigure, ReportPart, ReportTable
from hekla.apps.reports.figures import HEIGHT, WIDTH, draw

_LATIN, _OTHER = "Helvetica", "STSong-Light"
_PAGE = (595.27, 841.89)
"""A4, in points."""
_MARGIN, _FOOT = 48.0, 54.0
_INNER = _PAGE[0] - 2 * _MARGIN
_LINE = 17.0
_INK, _MUTED, _RULE = "#1c1e21", "#5c6068", "#dcdcd6"
_NUMBER = 76.0
"""The width of a column of numbers."""
_SMALLEST = 7.0
"""The size of a text that would not fit otherwise."""
_LAST_OF_PLANE = "\uffff"


def document(contents: ReportContents, link: str = "") -> bytes:
    """The whole file. `link`: the page of the report."""
    sheet = _Sheet(contents.title)
    sheet.paragraph(contents.title, 18)
    for line in contents.lines:
        sheet.paragraph(line, 9.5, _MUTED)
    for line in contents.notices:
        sheet.paragraph(line, 9.5, "#b3401f")
    for part in contents.parts:
        _draw_part(sheet, part)
    if link:
        sheet.down(10)
        sheet.paragraph(link, 8.5, _MUTED)
    return sheet.end()


def _draw_part(sheet: "_Sheet", part: ReportPart) -> None:
    figure_height = HEIGHT * _INNER / WIDTH + 14 if part.figure else 0
    sheet.require(60 + figure_height)
    sheet.down(14)
    sheet.paragraph(part.title, 13)
    if part.text:
        sheet.paragraph(part.text, 9.5, _MUTED)
    if part.figure:
        sheet.paragraph(part.figure.label, 9.5, _MUTED)
        sheet.figure(part.figure)
    if part.table:
        sheet.table(part.table)


class _Sheet:
    """Pages that are filled from the top. `_y`: the height of what comes next, from the bottom of the page."""

    def __init__(self, title: str) -> None:
        from reportlab.pdfgen.canvas import Canvas  # noqa: PLC0415  (slow)

        _register_font()
        self._title, self._number = title, 1
        self._canvas = Canvas(io.BytesIO(), pagesize=_PAGE, pageCompression=1, lang=get_language() or "en")
        self._canvas.setTitle(title)
        self._canvas.setCreator("Hekla")
        self._y = _PAGE[1] - _MARGIN

    def end(self) -> bytes:
        """End the last page. Returns the file."""
        self._end_page()
        content: bytes = self._canvas.getpdfdata()
        return content

    def require(self, height: float) -> None:
        """Begin another page unless this one has so much room."""
        if self._y - height < _FOOT:
            self._end_page()
            self._y, self._number = _PAGE[1] - _MARGIN, self._number + 1

    def down(self, height: float) -> None:
        """Leave a space."""
        self._y -= height

    def paragraph(self, text: str, size: float, colour: str = _INK) -> None:
        """Text in lines."""
        for line in _lines(text, size, _INNER):
            self.require(size * 1.45)
            self._y -= size * 1.45
            self._write(line, _MARGIN, self._y + size * 0.3, size, colour)

    def figure(self, figure: ReportFigure) -> None:
        """Stacked bars, as wide as the page."""
        drawing, scale = draw(figure), _INNER / WIDTH
        top, self._y = self._y, self._y - HEIGHT * scale - 6
        for height in drawing.grid:
            self._rule(top - height * scale, _MARGIN + drawing.left * scale)
        for one in drawing.rectangles:
            self._canvas.setFillColor(_colour(one.colour))
            bottom = top - (one.y + one.height) * scale
            shape = (_MARGIN + one.x * scale, bottom, one.width * scale, one.height * scale)
            self._canvas.rect(*shape, stroke=0, fill=1)
        for word in drawing.words:
            wide = _width(word.text, 8)
            x = _MARGIN + word.x * scale - (wide if word.is_right else wide / 2)
            self._write(word.text, x, top - word.y * scale, 8, _MUTED)

    def table(self, table: ReportTable) -> None:
        """Rows with a rule below each; the heads again on every page."""
        self.down(4)
        self._row(table.heads, colour=_MUTED)
        colours = table.colours or ("",) * len(table.rows)
        for row, swatch in zip(table.rows, colours, strict=True):
            page = self._number
            self.require(_LINE)
            if page != self._number:
                self._row(table.heads, colour=_MUTED)
            self._row(row, swatch=swatch)
        if table.foot:
            self._row(table.foot)

    def _row(self, cells: Sequence[str], *, colour: str = _INK, swatch: str = "") -> None:
        self.require(_LINE)
        self._y -= _LINE
        first, base = _MARGIN, self._y + 5
        if swatch:
            self._canvas.setFillColor(_colour(swatch))
            self._canvas.rect(first, base - 1, 8, 8, stroke=0, fill=1)
            first += 14
        left = _PAGE[0] - _MARGIN - _NUMBER * (len(cells) - 1)
        self._write(_cut(cells[0], 9.5, left - first - 6), first, base, 9.5, colour)
        for number, cell in enumerate(cells[1:], start=1):
            size = max(_SMALLEST, min(9.5, 9.5 * (_NUMBER - 4) / max(1.0, _width(cell, 9.5))))
            fitting = _cut(cell, size, _NUMBER - 4)
            self._write(fitting, left + number * _NUMBER - _width(fitting, size), base, size, colour)
        self._rule(self._y, _MARGIN)

    def _rule(self, y: float, left: float) -> None:
        self._canvas.setStrokeColor(_colour(_RULE))
        self._canvas.setLineWidth(0.6)
        self._canvas.line(left, y, _PAGE[0] - _MARGIN, y)

    def _write(self, text: str, x: float, y: float, size: float, colour: str) -> None:
        self._canvas.setFillColor(_colour(colour))
        for font, run in _runs(text):
            self._canvas.setFont(font, size)
            self._canvas.drawString(x, y, run)
            x += _run_width(run, font, size)

    def _end_page(self) -> None:
        words = _("%(title)s, page %(number)d") % {"title": self._title, "number": self._number}
        self._write(_cut(words, 8, _INNER), _MARGIN, _FOOT - 26, 8, _MUTED)
        self._canvas.showPage()


@cache
def _register_font() -> None:
    from reportlab.pdfbase import pdfmetrics  # noqa: PLC0415
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont  # noqa: PLC0415

    pdfmetrics.registerFont(UnicodeCIDFont(_OTHER))


@cache
def _colour(text: str) -> Any:  # noqa: ANN401  (ReportLab has no types)
    from reportlab.lib.colors import HexColor  # noqa: PLC0415

    return HexColor(text)


@cache
def _font_of(character: str) -> str:
    """The font that has this character."""
    try:
        character.encode("cp1252")
    except UnicodeEncodeError:
        return _OTHER
    return _LATIN


def _runs(text: str) -> Iterator[tuple[str, str]]:
    """The text in parts of one font each. STSong-Light has no characters beyond the first plane of Unicode."""
    fitting = "".join("□" if character > _LAST_OF_PLANE else character for character in text)
    for font, run in groupby(fitting, _font_of):
        yield font, "".join(run)


def _run_width(run: str, font: str, size: float) -> float:
    from reportlab.pdfbase.pdfmetrics import stringWidth  # noqa: PLC0415

    return float(stringWidth(run, font, size))


def _width(text: str, size: float) -> float:
    return sum(_run_width(run, font, size) for font, run in _runs(text))


def _cut(text: str, size: float, most: float) -> str:
    """As much of the text as fits on one line."""
    if _width(text, size) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _width(f"{text[:middle]}…", size) <= most else (low, middle - 1)
    return f"{text[:low]}…"


def _lines(text: str, size: float, most: float) -> Iterator[str]:
    """The text in lines that fit. Latin text breaks between words, other text anywhere."""
    line = ""
    for word in _words(text):
        if line and _width(line + word, size) > most:
            yield line.rstrip()
            line = ""
        line += word if line else word.lstrip()
        while _width(line, size) > most:
            head = _cut(line, size, most).removesuffix("…") or line[0]
            yield head
            line = line[len(head) :]
    yield line.rstrip()


def _words(text: str) -> Iterator[str]:
    for is_latin, run in groupby(text, lambda character: _font_of(character) == _LATIN):
        if not is_latin:
            yield from run
            continue
        word = ""
        for character in run:
            word += character
            if character == " ":
                yield word
                word = ""
        if word:
            yield word
