"""Searching the log of a pod, however long it is: in pieces, each of bounded cost, going on where the last one ended.

A position is a byte and the number of the line that begins there, so that lines are counted once. Lines are cut at line
feeds, as pages show them. A line that is longer than a piece is searched in parts that overlap, so that nothing is
missed at a seam; of what is found only the surroundings are told.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hekla.backends.base import Backend, PodKey
from hekla.backends.logs import read_bytes
from hekla.lib.text import strip_control_codes

MOST_HITS = 200
MOST_BYTES = 16 * 2**20
"""What one call looks through at most."""
MOST_NEEDLE = 200
_PIECE = 2**20
_SHOWN = 400
_BEFORE = 120


@dataclass(frozen=True, slots=True)
class Needle:
    """What is searched for: plain text of at most MOST_NEEDLE letters, in one line."""

    text: str
    ignore_case: bool = False

    def find(self, line: str) -> int:
        """Where it begins in this line; -1 where it is not in it."""
        return line.lower().find(self.text.lower()) if self.ignore_case else line.find(self.text)

    def is_in(self, data: bytes) -> bool:
        """Whether it may be anywhere here; asked first, since most of a log holds nothing of it."""
        if not self.ignore_case:
            return self.text.encode() in data
        return self.text.lower() in data.decode(errors="replace").lower()


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that holds it: its number from 1, its first byte, and the text around the first place."""

    line: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """Hits in order, and where the next call goes on. `complete`: the log has been looked through to its end."""

    hits: tuple[Hit, ...]
    next_offset: int
    next_line: int
    complete: bool


def search(backend: Backend, key: PodKey, needle: Needle, *, offset: int, line: int, most: int, ended: bool) -> Found:
    """Look on from the line `line`, which begins at `offset`, for up to `most` hits or MOST_BYTES."""
    hits: list[Hit] = []
    limit = offset + MOST_BYTES
    while len(hits) < most and offset < limit:
        piece = read_bytes(backend, key, offset=offset, limit=_PIECE, ended=ended).data
        is_last = len(piece) < _PIECE
        data, step = (piece, len(piece)) if is_last else _whole_lines(piece, needle)
        for hit, next_offset, next_line in _hits(data, needle, offset, line):
            hits.append(hit)
            if len(hits) == most:
                return Found(tuple(hits), next_offset, next_line, complete=False)
        offset, line = offset + step, line + data.count(b"\n")
        if is_last:
            return Found(tuple(hits), offset, line, complete=True)
    return Found(tuple(hits), offset, line, complete=False)


def _whole_lines(piece: bytes, needle: Needle) -> tuple[bytes, int]:
    """Up to the last line feed; else all of it, of which the end is looked at again. With how far that leads."""
    end = piece.rfind(b"\n") + 1
    return (piece[:end], end) if end else (piece, len(piece) - 4 * len(needle.text))


def _hits(data: bytes, needle: Needle, offset: int, line: int) -> Iterator[tuple[Hit, int, int]]:
    """Each hit, and where to go on behind it."""
    if not needle.is_in(data):
        return
    for raw in _lines(data):
        text = raw.decode(errors="replace").rstrip("\r\n")
        behind = (offset + len(raw), line + raw.endswith(b"\n"))
        if (at := needle.find(text)) >= 0:
            yield Hit(line, offset, _around(text, at)), *behind
        offset, line = behind


def _lines(data: bytes) -> Iterator[bytes]:
    """By line feeds alone: a carriage return begins no line, programs write over one with it."""
    parts = data.split(b"\n")
    yield from (part + b"\n" for part in parts[:-1])
    if parts[-1]:
        yield parts[-1]


def _around(text: str, at: int) -> str:
    begin = max(0, at - _BEFORE) if len(text) > _SHOWN else 0
    shown = strip_control_codes(text[begin : begin + _SHOWN])
    return f"{'…' if begin else ''}{shown}{'…' if begin + _SHOWN < len(text) else ''}"
