"""Safe and short forms of text from users.

Bidirectional controls of Unicode let a text look different from what it is: with U+202E before it, `gpj.exe` looks like
`exe.jpg`. Where people read a text, such a control is shown by its number.
"""

import re

_CONTROL_CODES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_BIDI_CONTROLS = re.compile(f"[{_BIDI}]")
_MARKUP = re.compile(
    r"(<(?:textarea|script|style)\b.*?</(?:textarea|script|style)\s*>|<[^>]*>)", re.DOTALL | re.IGNORECASE
)
_ATTRIBUTE = re.compile(r"""([^\s"'=<>/]+)(\s*=\s*(?:"[^"]*"|'[^']*'))""")
_READ_BY_PEOPLE = re.compile(
    r"title|alt|placeholder|label|aria-(?:\w*description|label|placeholder|valuetext)|data-(?:confirm(?:-\w+)?|label|log-names)",
    re.IGNORECASE,
)


def strip_control_codes(text: str) -> str:
    """Remove escape sequences and control codes of terminals, and show bidirectional controls."""
    return show_bidi_controls(_CONTROL_CODES.sub("", text))


def show_bidi_controls(text: str) -> str:
    """The text with each bidirectional control as `⟨U+202E⟩`."""
    return _BIDI_CONTROLS.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def show_bidi_in_html(html: str) -> str:
    """The HTML with bidirectional controls shown in what people read: texts, and attributes such as `title`.

    Values of form fields that people can change stay, because people send them back.
    """
    if not any(control in html for control in _BIDI):  # on a large page five times as fast as the pattern
        return html
    parts = _MARKUP.split(html)  # texts and markup in turn
    return "".join(
        _show_in_markup(part) if number % 2 else show_bidi_controls(part) for number, part in enumerate(parts)
    )


def _show_in_markup(markup: str) -> str:
    """A tag, or an element whose content is no text of the page, with such attributes of its tag shown."""
    if _BIDI_CONTROLS.search(markup) is None:
        return markup
    tag, end, content = markup.partition(">")
    names = {name.casefold() for name in _ATTRIBUTE.sub(r"\1", tag).split()}
    is_read_only = names >= {"<input", "readonly"}

    def show(found: re.Match[str]) -> str:
        name = found[1]
        is_read = _READ_BY_PEOPLE.fullmatch(name) or (is_read_only and name.lower() == "value")
        return name + (show_bidi_controls(found[2]) if is_read else found[2])

    return _ATTRIBUTE.sub(show, tag) + end + content


def escape_bidi_in_json(text: str) -> str:
    """The same JSON document with bidirectional controls as `\\u202e`, for people who look at it."""
    return _BIDI_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def truncate(text: str, most: int) -> str:
    """At most `most` characters, with an ellipsis if some are cut off."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
