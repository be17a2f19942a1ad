"""Search the log of a pod, of any length, in calls of bounded cost: each continues where the last one ended.

A position is a byte and the number of the line that begins there, so lines are counted once. Lines end at line feeds,
as pages show them. A line longer than a chunk is searched in overlapping parts, so no match is missed. A match contains
only the text around it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hekla.backends.base import Backend, PodKey
from hekla.backends.logs import read_bytes
from hekla.lib.text import strip_control_codes

MAX_MATCHES = 200
MAX_BYTES = 16 * 2**20
"""The most that one call searches."""
MAX_QUERY = 200
_CHUNK = 2**20
_EXCERPT = 400
_BEFORE = 120


@dataclass(frozen=True, slots=True)
class LogQuery:
    """A search query: plain text of at most MAX_QUERY characters, within one line."""

    text: str
    ignore_case: bool = False

    def find(self, line: str) -> int:
        """The index of the first match in this line, or -1."""
        return line.lower().find(self.text.lower()) if self.ignore_case else line.find(self.text)

    def is_in(self, data: bytes) -> bool:
        """Whether the data may contain a match. A quick first check, because most of a log has none."""
        if not self.ignore_case:
            return self.text.encode() in data
        return self.text.lower() in data.decode(errors="replace").lower()


@dataclass(frozen=True, slots=True)
class LogMatch:
    """A matching line: its number from 1, its first byte, and the text around its first match."""

    line: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class LogMatches:
    """Matches in order, and where the next call continues. `complete`: the log was searched to its end."""

    hits: tuple[LogMatch, ...]
    next_offset: int
    next_line: int
    complete: bool


def search_log(
    backend: Backend, key: PodKey, query: LogQuery, *, offset: int, line: int, most: int, ended: bool
) -> LogMatches:
    """Search from the line `line`, which begins at `offset`, for up to `most` matches or MAX_BYTES."""
    matches: list[LogMatch] = []
    limit = offset + MAX_BYTES
    while len(matches) < most and offset < limit:
        chunk = read_bytes(backend, key, offset=offset, limit=_CHUNK, ended=ended).data
        is_last = len(chunk) < _CHUNK
        data, step = (chunk, len(chunk)) if is_last else _whole_lines(chunk, query)
        for match, next_offset, next_line in _matches(data, query, offset, line):
            matches.append(match)
            if len(matches) == most:
                return LogMatches(tuple(matches), next_offset, next_line, complete=False)
        offset, line = offset + step, line + data.count(b"\n")
        if is_last:
            return LogMatches(tuple(matches), offset, line, complete=True)
    return LogMatches(tuple(matches), offset, line, complete=False)


def _whole_lines(chunk: bytes, query: LogQuery) -> tuple[bytes, int]:
    """The data up to the last line feed and its length. Without a line feed: all of it, and a shorter step.

    The shorter step searches the end of the chunk again.
    """
    end = chunk.rfind(b"\n") + 1
    return (chunk[:end], end) if end else (chunk, len(chunk) - 4 * len(query.text))


def _matches(data: bytes, query: LogQuery, offset: int, line: int) -> Iterator[tuple[LogMatch, int, int]]:
    """Each match, with the offset and the line after it."""
    if not query.is_in(data):
        return
    for raw in _lines(data):
        text = raw.decode(errors="replace").rstrip("\r\n")
        following = (offset + len(raw), line + raw.endswith(b"\n"))
        if (at := query.find(text)) >= 0:
            yield LogMatch(line, offset, _around(text, at)), *following
        offset, line = following


def _lines(data: bytes) -> Iterator[bytes]:
    """Split at line feeds only: a carriage return does not start a line, because programs use it to overwrite one."""
    parts = data.split(b"\n")
    yield from (part + b"\n" for part in parts[:-1])
    if parts[-1]:
        yield parts[-1]


def _around(text: str, at: int) -> str:
    begin = max(0, at - _BEFORE) if len(text) > _EXCERPT else 0
    excerpt = strip_control_codes(text[begin : begin + _EXCERPT])
    return f"{'…' if begin else ''}{excerpt}{'…' if begin + _EXCERPT < len(text) else ''}"
