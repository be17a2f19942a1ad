"""What a person sees of a file without a download. Files of jobs are hostile: nothing in them runs, and all is bounded.

The result has texts only, except the bytes of images whose type their first bytes prove. Whoever shows them escapes
them. Markup (HTML, SVG, Markdown) is shown as text. No reader follows a reference, unpickles or decompresses.
"""

from hekla.domain.previews import images, notebooks, tables, text
from hekla.domain.previews.preview import Preview, PreviewKind
from hekla.lib.text import truncate

TEXT_BYTES = 256 * 1024
_WHOLE_BYTES = {"ipynb": 4 * 2**20, "json": 2**20}
"""By the end of the name: files that are read whole, unless they are larger."""
IMAGE_BYTES = 16 * 2**20
_HEX_BYTES, _HEX_LINE, _ASCII_END = 256, 16, 128
_MOST_LINES, _LONGEST_LINE = 5_000, 2_000


def bytes_to_read(name: str) -> int:
    """The number of bytes from the beginning of a file with this name that `preview` uses."""
    return _WHOLE_BYTES.get(_suffix(name), TEXT_BYTES)


def preview(name: str, head: bytes, size: int) -> Preview:
    """The preview of a file of `size` bytes that begins with `head` (`bytes_to_read` of them, or all)."""
    if media_type := images.media_type(head):
        return Preview(PreviewKind.IMAGE, media_type=media_type, is_cut=size > IMAGE_BYTES)
    is_whole, suffix = len(head) >= size, _suffix(name)
    if suffix == "ipynb" and is_whole and (cells := notebooks.cells(head)) is not None:
        return Preview(PreviewKind.NOTEBOOK, cells=cells.cells, is_cut=cells.is_cut)
    if suffix == "json" and is_whole and (pretty := text.pretty_json(head, _MOST_LINES)) is not None:
        return _lines(pretty, "utf-8", is_cut=False)
    is_cut = size > TEXT_BYTES
    decoded = text.decode(head[:TEXT_BYTES], is_cut=is_cut)
    if decoded is None:
        return Preview(PreviewKind.BINARY, hexdump=_hexdump(head), is_cut=size > _HEX_BYTES)
    content, encoding = decoded
    if suffix in tables.DELIMITERS and (table := tables.rows(content, suffix, is_cut=is_cut)) is not None:
        return Preview(PreviewKind.TABLE, encoding=encoding, rows=table.rows, is_cut=is_cut or table.is_cut)
    return _lines(content, encoding, is_cut=is_cut)


def _suffix(name: str) -> str:
    return name.lower().rpartition(".")[2]


def _lines(content: str, encoding: str, *, is_cut: bool) -> Preview:
    lines = content.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    cut = [truncate(text.visible(line[: _LONGEST_LINE + 1]), _LONGEST_LINE) for line in lines[:_MOST_LINES]]
    is_cut = is_cut or len(lines) > _MOST_LINES or any(len(line) > _LONGEST_LINE for line in lines)
    return Preview(PreviewKind.TEXT, encoding=encoding, lines=cut, is_cut=is_cut)


def _hexdump(head: bytes) -> list[str]:
    return [_hex_line(start, head[start : start + _HEX_LINE]) for start in range(0, len(head[:_HEX_BYTES]), _HEX_LINE)]


def _hex_line(start: int, part: bytes) -> str:
    signs = "".join(chr(byte) if chr(byte).isprintable() and byte < _ASCII_END else "." for byte in part)
    return f"{start:08x}  {part.hex(' ').ljust(3 * _HEX_LINE)} {signs}"
