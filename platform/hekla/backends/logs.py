"""Logs of pods as text."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from hekla.backends.base import Backend, BackendError, PodKey, UnknownPod
from hekla.backends.log_chunk import LogChunk

_Utf8 = codecs.getincrementaldecoder("utf-8")
_BEHIND = 2**62
"""An offset behind the end of any log; a read from it returns the offset of the end."""


@dataclass(frozen=True, slots=True)
class LogText:
    """Bytes `offset .. next_offset` of a log, as text. `is_full`: more may already be available.

    `times`: when its lines began to arrive, if that is known: from the line of this number on, counted from 0, up to
    the next entry, the time in milliseconds; 0: unknown.
    """

    text: str
    offset: int
    next_offset: int
    complete: bool
    is_full: bool
    times: Sequence[tuple[int, int]] = ()


def read_text(backend: Backend, key: PodKey, *, offset: int, limit: int, ended: bool) -> LogText:
    """The next part of a log, cut between characters. `ended`: the pod is known to have ended."""
    chunk = read_bytes(backend, key, offset=offset, limit=limit, ended=ended)
    data = chunk.data if chunk.complete and len(chunk.data) < limit else whole_characters(chunk.data)
    return LogText(
        text=data.decode(errors="replace"),
        offset=chunk.offset,
        next_offset=chunk.offset + len(data),
        complete=chunk.complete and len(chunk.data) < limit,
        is_full=len(chunk.data) == limit,
        times=line_times(data, chunk.offset, chunk.times),
    )


def read_bytes(backend: Backend, key: PodKey, *, offset: int, limit: int, ended: bool) -> LogChunk:
    """Up to `limit` bytes; none if the pod has not started, or the backend cannot answer now."""
    try:
        return backend.logs(key, offset=offset, limit=limit)
    except UnknownPod:
        return LogChunk(b"", offset, offset, complete=ended)
    except BackendError:
        return LogChunk(b"", offset, offset, complete=False)


def tail(backend: Backend, key: PodKey, *, limit: int, ended: bool) -> str:
    """The last `limit` bytes of a log as text. If the log is longer, the text begins with a whole line."""
    size = read_bytes(backend, key, offset=_BEHIND, limit=1, ended=ended).offset
    begin = max(0, size - limit) if size < _BEHIND else 0
    text = read_bytes(backend, key, offset=begin, limit=limit, ended=ended).data.decode(errors="replace")
    return text.partition("\n")[2] or text if begin else text


def line_times(data: bytes, offset: int, times: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The times of lines, from those of bytes. `data` begins at `offset` of the log."""
    found: dict[int, int] = {}
    lines, counted = 0, 0
    for at, milliseconds in times:
        here = min(max(at - offset, 0), len(data))
        lines += data.count(b"\n", counted, here)
        counted = max(here, counted)
        is_within = here > 0 and data[here - 1 : here] != b"\n"
        found[lines + is_within] = milliseconds
    return list(found.items())


def whole_characters(data: bytes) -> bytes:
    """The data without an incomplete UTF-8 character at its end, whose rest is not written yet."""
    decoder = _Utf8(errors="replace")
    decoder.decode(data)
    unfinished, _ = decoder.getstate()
    return data[: len(data) - len(unfinished)]
