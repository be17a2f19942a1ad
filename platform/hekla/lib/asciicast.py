"""Recordings of terminals in the format asciicast v2: a header, then one event in each line.

An event is `[seconds, code, data]`: `o` is output, `r` a new size (`80x24`), `m` a mark of what happened.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hekla.lib.text import strip_control_codes, truncate

MEDIA_TYPE = "application/x-asciicast"
OUTPUT, RESIZE, MARK = "o", "r", "m"
LONGEST_EVENT = 1024 * 1024
"""Bytes of a line that readers accept."""
_LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class CastEvent:
    """`at`: seconds after the begin."""

    at: float
    code: str
    data: str

    def encode(self) -> bytes:
        """As a line."""
        return json.dumps([round(self.at, 3), self.code, self.data], ensure_ascii=False).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class CastLine:
    """A line of text that a terminal printed, and when it began."""

    at: float
    text: str


def header(columns: int, rows: int, *, timestamp: int, title: str) -> bytes:
    """The first line. `timestamp`: seconds since 1970."""
    facts = {"version": 2, "width": columns, "height": rows, "timestamp": timestamp, "title": title}
    return json.dumps(facts, ensure_ascii=False).encode() + b"\n"


def events(lines: Iterable[bytes]) -> Iterator[CastEvent]:
    """The events in these lines after the header. A damaged line is left out: the end of a recording may be cut off."""
    for line in lines:
        try:
            at, code, data = json.loads(line[:LONGEST_EVENT])
            yield CastEvent(float(at), str(code), str(data))
        except (ValueError, TypeError, RecursionError):
            continue


def cut(found: Iterable[CastEvent], begin: float, end: float) -> Iterator[CastEvent]:
    """The events from `begin` to `end`, with times from 0. The size is that at `begin`; the screen begins empty."""
    size: CastEvent | None = None
    for event in found:
        if event.at > end:
            return
        if event.at < begin:
            size = event if event.code == RESIZE else size
            continue
        if size is not None:
            yield CastEvent(0.0, RESIZE, size.data)
            size = None
        yield CastEvent(event.at - begin, event.code, event.data)


def text_lines(found: Iterable[CastEvent]) -> Iterator[CastLine]:
    """The lines of text in the output, without control codes. Of a line that was written again, the last state."""
    began, parts, length = 0.0, list[str](), 0
    for event in found:
        if event.code != OUTPUT:
            continue
        *whole, rest = event.data.split("\n")
        for part in whole:
            at = began if parts else event.at
            parts.append(part)
            if text := _visible("".join(parts)):
                yield CastLine(at, text)
            parts, length = [], 0
        if rest and length < LONGEST_EVENT:
            began = began if parts else event.at
            parts.append(rest)
            length += len(rest)
    if text := _visible("".join(parts)):
        yield CastLine(began, text)


def _visible(line: str) -> str:
    return truncate(strip_control_codes(line.rstrip("\r").rpartition("\r")[2]).strip(), _LONGEST_LINE)
