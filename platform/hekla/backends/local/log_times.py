"""When the parts of a pod's log arrived: marks of 16 bytes, each an offset in the log and a time in milliseconds.

The shim writes a mark before bytes that arrive, unless the mark before is younger than a step: a tenth of a second, in
a long file a second. So a mark is true, to a step, for the bytes up to the next one. The last mark of a full file has
the time 0: nothing is known about what follows. Few imports, standard library only: see `pod_folder`.
"""

import contextlib
import os
import struct
import time
from typing import BinaryIO

from hekla.backends.local.pod_folder import open_regular

MARK = struct.Struct("<QQ")
MAX_BYTES = 8 * 2**20
MAX_MARKS = 5000
"""Marks that one read returns. If there are more, the last one has the time 0."""
_FINE_BYTES, _FINE_MS, _COARSE_MS = 2**20, 100, 1000
_LATEST_MS = 2**43
"""The year 2248. A later time was not written by a shim."""


class LogClock:
    """Writes the marks of one log. Without its file, for example on a full disk, the log has no times."""

    def __init__(self, path: str) -> None:
        self._file, self._size, self._latest = -1, 0, 0
        with contextlib.suppress(OSError):
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            self._size = os.fstat(self._file).st_size

    def mark(self, log: int) -> None:
        """Note that bytes arrive now at the end of the log, an open file."""
        now = time.time_ns() // 1_000_000
        step = _FINE_MS if self._size < _FINE_BYTES else _COARSE_MS
        if self._file < 0 or 0 <= now - self._latest < step:
            return
        is_full = self._size >= MAX_BYTES - MARK.size
        with contextlib.suppress(OSError):
            os.write(self._file, MARK.pack(os.fstat(log).st_size, 0 if is_full else now))
            self._size += MARK.size
            self._latest = now
        if is_full:
            os.close(self._file)
            self._file = -1


def read_times(path: str, begin: int, end: int) -> list[tuple[int, int]]:
    """The marks of the bytes `begin` to `end` of a log: the last one that is not behind `begin`, and those after it.

    Empty without the file. It is read as a pod may have left it: what is no mark has no effect.
    """
    try:
        with open_regular(path) as file:
            marks = _marks_from(file, begin)
    except OSError:
        return []
    return [(offset, at if at < _LATEST_MS else 0) for offset, at in marks if offset < end]


def _marks_from(file: BinaryIO, begin: int) -> list[tuple[int, int]]:
    count = min(file.seek(0, os.SEEK_END), MAX_BYTES) // MARK.size
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if _read(file, middle, 1)[0][0] <= begin:
            low = middle + 1
        else:
            high = middle
    marks = _read(file, max(low - 1, 0), MAX_MARKS + 1) if count else []
    return marks if len(marks) <= MAX_MARKS else [*marks[: MAX_MARKS - 1], (marks[MAX_MARKS - 1][0], 0)]


def _read(file: BinaryIO, first: int, count: int) -> list[tuple[int, int]]:
    file.seek(first * MARK.size)
    data = file.read(count * MARK.size)
    return list(MARK.iter_unpack(data[: len(data) // MARK.size * MARK.size])) or [(2**63, 0)]
