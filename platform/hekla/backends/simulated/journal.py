"""The journal of a simulated cluster: an append-only file of JSON lines, shared by all processes that open the cluster.

A writer locks a file beside it, and first removes an incomplete last line (left by a writer that died). Readers follow
without a lock, up to the last complete line. `rewrite` replaces the file; readers detect it by the inode, and start
again. Nothing real depends on the journal, so lines are not synced to the disk.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

Entry = dict[str, Any]


class SimulationJournal:
    """Reads and writes one journal file. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = path.with_suffix(".lock")
        self._handle: int | None = None
        self._offset = 0
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)

    def news(self) -> tuple[bool, list[Entry]]:
        """Entries since the last call. With True: the file was replaced, and these are all its entries."""
        handle, anew = self._follow()
        size = os.fstat(handle).st_size
        if size == self._offset:
            return anew, []
        chunk = os.pread(handle, size - self._offset, self._offset)
        end = chunk.rfind(b"\n") + 1
        self._offset += end
        return anew, [json.loads(line) for line in chunk[:end].splitlines()]

    def _follow(self) -> tuple[int, bool]:
        """A handle of the present file, and whether the file is new. It stays open, so its inode is not reused."""
        if self._handle is not None and os.fstat(self._handle).st_ino == os.stat(self._path).st_ino:
            return self._handle, False
        if self._handle is not None:
            os.close(self._handle)
        self._handle, self._offset = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC), 0
        return self._handle, True

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A context for exclusive writes. Every process, ours included, reads appended entries by `news`."""
        with open(self._lock, "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._drop_torn_line()
            yield

    def append(self, entries: Iterable[Entry]) -> None:
        """Append entries. Only within `writing`."""
        with open(self._path, "ab") as file:
            file.write(b"".join(_line(entry) for entry in entries))

    def rewrite(self, entries: Iterable[Entry]) -> None:
        """Replace all entries. Only within `writing`."""
        draft = self._path.with_suffix(".draft")
        with open(draft, "wb") as file:
            file.writelines(_line(entry) for entry in entries)
        os.replace(draft, self._path)

    def _drop_torn_line(self) -> None:
        with open(self._path, "rb+") as file:
            size = file.seek(0, os.SEEK_END)
            keep = size
            while keep and not _ends_line(file, keep):
                keep -= 1
            if keep != size:
                file.truncate(keep)


def _ends_line(file: BinaryIO, position: int) -> bool:
    file.seek(position - 1)
    return file.read(1) == b"\n"


def _line(entry: Entry) -> bytes:
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
