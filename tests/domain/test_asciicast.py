"""Recordings as asciicast v2: their lines, parts, and text."""

import json

from hekla.lib import asciicast
from hekla.lib.asciicast import CastEvent, CastLine


def test_lines_are_those_of_the_format() -> None:
    assert json.loads(asciicast.header(80, 24, timestamp=5, title="a\n")) == {
        "version": 2, "width": 80, "height": 24, "timestamp": 5, "title": "a\n",
    }  # fmt: skip
    event = CastEvent(1.23456, "o", '\x1b[31m"中\n\u2028')
    assert event.encode().count(b"\n") == 1
    assert list(asciicast.events([event.encode()])) == [CastEvent(1.235, "o", event.data)]


def test_damaged_lines_are_left_out() -> None:
    lines = [b"", b"{}", b"[1]", b'["x","o",""]', b"[" * 9000, b'[1,"o","', b"\xff", b'[2,"o","x"]']
    assert list(asciicast.events(lines)) == [CastEvent(2.0, "o", "x")]


def test_part_begins_at_zero_with_the_size_of_then() -> None:
    whole = [CastEvent(0, "o", "a"), CastEvent(1, "r", "90x30"), CastEvent(2, "o", "b"), CastEvent(9, "o", "c")]
    assert list(asciicast.cut(whole, 1.5, 3)) == [CastEvent(0, "r", "90x30"), CastEvent(0.5, "o", "b")]
    assert list(asciicast.cut(whole, 3, 4)) == []


def test_text_has_lines_without_control_codes() -> None:
    printed = [
        (0, "one"),
        (1, " more\r\n10%\r"),
        (2, "20%\r\n\x1b]0;t\x07\x1b[1m"),
        (3, "bold\x1b[0m\r\n\r\n"),
        (4, "$ \u202e"),
    ]
    found = list(asciicast.text_lines(CastEvent(at, "o", text) for at, text in printed))
    assert found == [CastLine(0, "one more"), CastLine(1, "20%"), CastLine(2, "bold"), CastLine(4, "$ ⟨U+202E⟩")]
