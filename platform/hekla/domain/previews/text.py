"""Bytes as text, if they are text: the encoding is guessed from what the bytes allow, never from the file itself."""

import codecs
import json
import re
from collections.abc import Iterable

from hekla.lib.text import show_bidi_controls

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""With halves of surrogate pairs, which JSON can name and UTF-8 cannot encode."""
_BINARY = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
"""Controls that no text file has. A bell, a backspace, a form feed and the escapes of colours occur in logs."""
_PICTURES, _DELETE = 0x2400, 0x7F
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_GUESSES = ("gb18030", "cp1252")
_JSON = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_DEEPEST = 100


def decode(head: bytes, *, is_cut: bool) -> tuple[str, str] | None:
    """The text and its encoding; None if the bytes are no text. `is_cut`: the last character may be incomplete."""
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return _checked(head, encoding, is_cut=is_cut)
    for encoding in ("utf-8", *_GUESSES):
        if (found := _checked(head, encoding, is_cut=is_cut)) is not None:
            return found
    return None


def visible(text: str) -> str:
    """The text with its control characters as pictures, and bidirectional controls by their number. Tabs stay."""
    return show_bidi_controls(_CONTROL.sub(_picture, text))


def pretty_json(document: bytes, most: int) -> str | None:
    """A JSON document with one value a line, each as it is written; of a long one, more than `most` lines.

    None if it is no JSON, or nested deeply.
    """
    try:
        text = document.decode("utf-8-sig")
        json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    return _indented((found[0] for found in _JSON.finditer(text)), most)


def _checked(head: bytes, encoding: str, *, is_cut: bool) -> tuple[str, str] | None:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=not is_cut)
    except UnicodeDecodeError:
        return None
    return None if _BINARY.search(text) else (text, encoding.removesuffix("-sig"))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(_PICTURES + code) if code < _DELETE else f"⟨U+{code:04X}⟩"


def _indented(tokens: Iterable[str], most: int) -> str | None:
    """The tokens with a line for each value, until there are more than `most`: the indents may be most of them.

    None if they are nested deeper than 100 levels.
    """
    parts, depth, lines, before = list[str](), 0, 1, ""
    for sign in tokens:
        is_end = sign in "}]"
        depth -= is_end
        if before and (before not in "{[" if is_end else before in ",{["):
            parts.append(_line(depth))
            lines += 1
        depth += sign in "{["
        if depth > _DEEPEST:
            return None
        parts.append(": " if sign == ":" else sign)
        if lines > most:
            break
        before = sign
    return "".join(parts)


def _line(depth: int) -> str:
    return "\n" + "  " * depth
