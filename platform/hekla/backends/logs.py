"""Logs of pods as text, read the same way for whoever shows them."""

import codecs
from dataclasses import dataclass

from hekla.backends.base import Backend, BackendError, LogChunk, PodKey, UnknownPod

_Utf8 = codecs.getincrementaldecoder("utf-8")
_BEHIND = 2**62
"""Behind the end of any log: whoever asks for it is told where the end is."""


@dataclass(frozen=True, slots=True)
class LogText:
    """Bytes `offset .. next_offset` of a log, as text. `is_full`: there may be more at once."""

    text: str
    offset: int
    next_offset: int
    complete: bool
    is_full: bool


def read_text(backend: Backend, key: PodKey, *, offset: int, limit: int, ended: bool) -> LogText:
    """The next piece of a log, cut between characters; `ended` tells whether the pod is known to be over."""
    chunk = read_bytes(backend, key, offset=offset, limit=limit, ended=ended)
    data = chunk.data if chunk.complete and len(chunk.data) < limit else whole_characters(chunk.data)
    return LogText(
        text=data.decode(errors="replace"),
        offset=chunk.offset,
        next_offset=chunk.offset + len(data),
        complete=chunk.complete and len(chunk.data) < limit,
        is_full=len(chunk.data) == limit,
    )


def read_bytes(backend: Backend, key: PodKey, *, offset: int, limit: int, ended: bool) -> LogChunk:
    """Up to `limit` bytes; none for a pod that has not begun, or whose backend cannot answer now."""
    try:
        return backend.logs(key, offset=offset, limit=limit)
    except UnknownPod:
        return LogChunk(b"", offset, offset, complete=ended)
    except BackendError:
        return LogChunk(b"", offset, offset, complete=False)


def tail(backend: Backend, key: PodKey, *, limit: int, ended: bool) -> str:
    """The last `limit` bytes of a log as text, from the first whole line on where something was left out."""
    size = read_bytes(backend, key, offset=_BEHIND, limit=1, ended=ended).offset
    begin = max(0, size - limit) if size < _BEHIND else 0
    text = read_bytes(backend, key, offset=begin, limit=limit, ended=ended).data.decode(errors="replace")
    return text.partition("\n")[2] or text if begin else text


def whole_characters(data: bytes) -> bytes:
    """These bytes without the beginning of a character at the end, whose rest was not written yet."""
    decoder = _Utf8(errors="replace")
    decoder.decode(data)
    unfinished, _ = decoder.getstate()
    return data[: len(data) - len(unfinished)]
