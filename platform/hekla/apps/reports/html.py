"""A report as one HTML document without scripts or links to other files, for mails and downloads.

It is built here and not by a template, because our pages allow no styles inside them; a mail has no other place.
"""

from collections.abc import Iterable

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from hekla.apps.reports.contents import ReportContents, ReportFigure, ReportPart, ReportTable
from hekla.apps.reports.figures import HEIGHT, WIDTH, draw

_STYLE = SafeString(
    "body{margin:0 auto;padding:24px;max-width:720px;color:#1c1e21;background:#fff;font:14px/1.5 system-ui,"
    '-apple-system,"Segoe UI",Roboto,"Noto Sans SC","PingFang SC","Microsoft YaHei",sans-serif}'
    "h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 4px}p{margin:4px 0;overflow-wrap:anywhere}"
    ".muted{color:#5c6068}.notice{border-left:3px solid #b3401f;padding:2px 10px;margin:8px 0}"
    "table{border-collapse:collapse;width:100%;margin-top:8px}"
    "th,td{text-align:left;padding:4px 8px;border-bottom:1px solid #dcdcd6;overflow-wrap:anywhere}"
    "tbody th{font-weight:400}tfoot th,tfoot td{font-weight:600}"
    ".number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    "th:first-child{min-width:7em}section{overflow-x:auto}"
    "@media(max-width:560px){body{padding:12px}th,td{padding:4px}}"
    ".swatch{display:inline-block;width:10px;height:10px;margin-right:8px}svg{max-width:100%;height:auto}"
)


def document(contents: ReportContents, link: str = "", leave: str = "") -> str:
    """The whole document. For its end: `link`, the page of the report, and `leave`, with which its reader leaves it."""
    return format_html(
        '<!doctype html><html lang="{}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        "<title>{}</title><style>{}</style></head><body><h1>{}</h1>{}{}{}{}{}</body></html>",
        get_language() or "en",
        contents.title,
        _STYLE,
        contents.title,
        _paragraphs(contents.lines, "muted"),
        _paragraphs(contents.notices, "notice"),
        format_html_join("", "{}", ((_part(part),) for part in contents.parts)),
        _link(link, _("Open this report in Hekla")),
        _link(leave, _("Do not send me this report any more")),
    )


def _link(address: str, words: str) -> SafeString:
    return format_html('<p class="muted"><a href="{}">{}</a></p>', address, words) if address else SafeString("")


def text(contents: ReportContents, link: str, leave: str = "") -> str:
    """The same as plain text, for mail programs that show no HTML."""
    lines = [contents.title, *contents.lines, *contents.notices]
    for part in contents.parts:
        lines += ["", part.title, *([part.text] if part.text else [])]
        if table := part.table:
            lines += [" | ".join(row) for row in (table.heads, *table.rows, *([table.foot] if table.foot else []))]
    last = [_("Do not send me this report any more: %s") % leave] if leave else []
    return "\n".join([*lines, "", link, *last])


def _paragraphs(lines: Iterable[str], kind: str) -> SafeString:
    return format_html_join("", '<p class="{}">{}</p>', ((kind, line) for line in lines))


def _part(part: ReportPart) -> SafeString:
    return format_html(
        "<section><h2>{}</h2>{}{}{}</section>",
        part.title,
        _paragraphs([part.text] if part.text else [], "muted"),
        figure_of(part.figure) if part.figure else "",
        _table(part.table) if part.table else "",
    )


def figure_of(figure: ReportFigure) -> SafeString:
    """A figure as SVG. Its colours are explained by the table below it."""
    drawing = draw(figure)
    grid = (("%.1f" % y, "%.1f" % drawing.left, "%.0f" % WIDTH) for y in drawing.grid)  # noqa: UP031
    return format_html(
        '<p class="muted">{}</p><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" role="img" '
        'aria-label="{}">{}{}{}</svg>',
        figure.label,
        int(WIDTH),
        int(HEIGHT),
        int(WIDTH),
        figure.label,
        format_html_join("", '<path d="M{1} {0}H{2}" stroke="#8a8f99" stroke-opacity=".35"/>', grid),
        format_html_join(
            "",
            '<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>',
            (
                (f"{one.x:.1f}", f"{one.y:.2f}", f"{one.width:.1f}", f"{one.height:.2f}", one.colour)
                for one in drawing.rectangles
            ),
        ),
        format_html_join(
            "",
            '<text x="{}" y="{}" font-size="11" text-anchor="{}" fill="currentColor">{}</text>',
            ((f"{one.x:.1f}", f"{one.y:.1f}", "end" if one.is_right else "middle", one.text) for one in drawing.words),
        ),
    )


def _table(table: ReportTable) -> SafeString:
    colours = table.colours or ("",) * len(table.rows)
    rows = ((_row(row, colour),) for row, colour in zip(table.rows, colours, strict=True))
    return format_html(
        "<table><thead>{}</thead><tbody>{}</tbody>{}</table>",
        _heads(table.heads),
        format_html_join("", "{}", rows),
        format_html("<tfoot>{}</tfoot>", _row(table.foot)) if table.foot else "",
    )


def _heads(heads: tuple[str, ...]) -> SafeString:
    cells = ((' class="number"' if number else "", head) for number, head in enumerate(heads))
    return format_html(
        "<tr>{}</tr>", format_html_join("", '<th scope="col"{}>{}</th>', ((SafeString(a), b) for a, b in cells))
    )


def _row(row: tuple[str, ...], colour: str = "") -> SafeString:
    swatch = format_html('<span class="swatch" style="background:{}"></span>', colour) if colour else ""
    return format_html(
        '<tr><th scope="row">{}{}</th>{}</tr>',
        swatch,
        row[0],
        format_html_join("", '<td class="number">{}</td>', ((cell,) for cell in row[1:])),
    )
