"""Files of running pods, read by commands in their containers, so only while the pod runs.

Each entry of an answer is checked; see `pod_scripts` about the scripts.
"""

import asyncio
import io
import queue
import re
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import BinaryIO, cast

from hekla.backends.base import BackendError, PodKey, UnknownPod
from hekla.backends.file_paths import is_visible, parts_of
from hekla.backends.files import MOST_ENTRIES, FileKind, FolderListing, FolderSize, NoSuchFileError, PodFile
from hekla.backends.kubernetes.pod_scripts import ENTER, NO_ANSWER, WRONG_ANSWER, PodScripts, script_command
from hekla.backends.kubernetes.pod_streams import PodStreams
from hekla.domain.volumes import WORKING_DIR

_LIST = f"""{ENTER}
command -v stat >/dev/null || exit 45
left=$1
for name in * .[!.]* ..?*; do
  [ -e "./$name" ] || [ -L "./$name" ] || continue
  [ "$left" -gt 0 ] || exit 0
  left=$((left - 1))
  stat -c '%f %s %Y' -- "./$name" 2>/dev/null && printf '%s\\0' "$name"
done
exit 0
"""
_SIZE = f"""{ENTER}
[ -L "./$1" ] && exit 44
[ -f "./$1" ] || exit 44
command -v head >/dev/null || exit 45
stat -c '%s' -- "./$1" || exit 45
"""
_READ = f"""{ENTER}
[ -L "./$1" ] && exit 44
[ -f "./$1" ] || exit 44
exec head -c "$2" < "./$1"
"""
_ENTRY = re.compile(rb"([0-9a-f]{1,8}) ([0-9]{1,19}) (-?[0-9]{1,19})\n([^\0/]{1,1024})\0")
_LATEST = 2**33
_PIECE_SECONDS = 60.0
_LEAST_RATE = 32 * 1024
"""Bytes per second: a reader that waits for less gives up, or a pod could hold it for ever."""
_MOST_WAITING = 16
"""Pieces of a file that arrived and were not read yet."""


class KubernetesFiles:
    """Implements `files.PodFiles`."""

    def __init__(self, streams: PodStreams, root: str = str(WORKING_DIR)) -> None:
        self._streams, self._scripts = streams, PodScripts(streams, root)

    def list_folder(self, key: PodKey, path: str, most: int = MOST_ENTRIES) -> FolderListing:
        """The content of a folder. A large one is read up to 500 entries, in the order of the shell."""
        parts, most = parts_of(path), min(most, MOST_ENTRIES)
        answer = self._scripts.run(key, _LIST, [*self._scripts.place(parts), str(most + 1)], path)
        found = list(islice(_entries(answer), most + 1))  # the pod may send more
        entries = [entry for entry in found if is_visible(entry.name, parts)]
        entries.sort(key=lambda one: (one.kind is not FileKind.FOLDER, one.name))
        return FolderListing(entries[:most], len(found) <= most)

    def open_file(self, key: PodKey, path: str) -> BinaryIO:
        """A regular file, which can be read once, from its beginning."""
        parts = parts_of(path)
        if not parts:
            raise NoSuchFileError(path)
        place, name = self._scripts.place(parts[:-1]), parts[-1]
        answer = self._scripts.run(key, _SIZE, [*place, name], path).strip()
        if not answer.isdigit() or len(answer) > 19:  # noqa: PLR2004  (digits of the largest file)
            raise BackendError(WRONG_ANSWER)
        command = script_command(_READ, [*place, name, answer.decode()])
        return cast("BinaryIO", io.BufferedReader(_FileStream(self._streams, key, command, int(answer))))

    def job_size(self, key: PodKey) -> FolderSize | None:  # noqa: ARG002
        """Unknown: it would read all files of the pod."""
        return None


class _FileStream(io.RawIOBase):
    """The content of a file, which a thread receives while it is read: the reader may change threads."""

    def __init__(self, streams: PodStreams, key: PodKey, command: Sequence[str], size: int) -> None:
        self._streams, self._key, self._command, self._size = streams, key, command, size
        self._pieces: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._position, self._rest, self._waited = 0, b"", 0.0
        self._is_started = self._is_over = self._is_whole = False
        self._is_dropped = threading.Event()

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether its size can be found by a jump to its end, before it is read."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Jump to the beginning or the end. Raises UnsupportedOperation once it is read, and for other places."""
        if self._is_started or offset or whence not in (io.SEEK_SET, io.SEEK_END):
            raise io.UnsupportedOperation("seek")
        self._position = self._size if whence == io.SEEK_END else 0
        return self._position

    def tell(self) -> int:
        """The number of bytes that were read."""
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a part of the buffer. Raises BackendError if the pod does not answer."""
        if not self._rest and not self._is_over and self._position < self._size:
            self._begin()
            self._receive()
        length = min(len(buffer), len(self._rest), self._size - self._position)
        buffer[:length] = self._rest[:length]
        self._rest, self._position = self._rest[length:], self._position + length
        return length

    def close(self) -> None:
        """End the thread."""
        self._is_dropped.set()
        super().close()

    def _begin(self) -> None:
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=self._pump, name="hekla-pod-file", daemon=True).start()

    def _receive(self) -> None:
        patience, begin = _PIECE_SECONDS + self._position / _LEAST_RATE - self._waited, time.monotonic()
        try:
            piece = self._pieces.get(timeout=max(0.0, min(patience, _PIECE_SECONDS)))
        except queue.Empty:
            raise BackendError(NO_ANSWER) from None
        self._waited += time.monotonic() - begin
        self._rest, self._is_over = piece or b"", piece is None
        if self._is_over and not self._is_whole:
            raise BackendError(NO_ANSWER)

    def _pump(self) -> None:
        """Receive the file, in a thread of its own. If that fails, its reader finds it not whole."""
        try:
            asyncio.run(self._receive_all())
        except (BackendError, UnknownPod, TimeoutError):
            pass
        finally:
            self._put(None)

    async def _receive_all(self) -> None:
        async with self._streams.run(self._key, self._command) as running:
            while not self._is_dropped.is_set():
                async with asyncio.timeout(_PIECE_SECONDS):
                    piece = await running.receive()
                if piece is None:
                    self._is_whole = running.exit_code == 0
                    return
                if not piece.is_error:
                    self._put(piece.data)

    def _put(self, piece: bytes | None) -> None:
        while not self._is_dropped.is_set():
            try:
                self._pieces.put(piece, timeout=1.0)
            except queue.Full:
                continue
            return


def _entries(answer: bytes) -> Iterator[PodFile]:
    """The entries in an answer. Raises BackendError if it is anything else."""
    place = 0
    while place < len(answer):
        match = _ENTRY.match(answer, place)
        if match is None or match[4] in (b".", b".."):
            raise BackendError(WRONG_ANSWER)
        place = match.end()
        mode, size, changed = int(match[1], 16), int(match[2]), int(match[3])
        changed_at = datetime.fromtimestamp(min(max(changed, 0), _LATEST), tz=UTC)
        yield PodFile(match[4].decode(errors="surrogateescape"), _kind(mode), min(size, 2**63 - 1), changed_at)


def _kind(mode: int) -> FileKind:
    if S_ISDIR(mode):
        return FileKind.FOLDER
    if S_ISREG(mode):
        return FileKind.FILE
    return FileKind.LINK if S_ISLNK(mode) else FileKind.OTHER
