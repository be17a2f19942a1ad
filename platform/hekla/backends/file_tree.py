"""All files below a folder of a pod: for a search by name, and for an archive.

A pod may make folders without end, and change them meanwhile. So the walk is bounded in entries, depth and time. It
follows no link, and says whether it has left something out.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from hekla.backends.base import Backend, BackendError, PodKey, UnknownPod
from hekla.backends.files import (
    FileKind,
    NoSuchFileError,
    PodFile,
    UnreadableFilesError,
    list_folder,
    read_file,
    visible_name,
)
from hekla.lib.text import show_bidi_controls
from hekla.lib.zip_stream import Pieces, zipped

_MOST_FOUND = 200
_MOST_VISITED = 20_000
_DEEPEST = 20
_SEARCH_SECONDS = 3.0
_MOST_FILES, _MOST_BYTES = 10_000, 50 * 2**30
"""Of an archive."""
_NOTE = "NOT-COMPLETE.txt"
_MOST_NOTED = 1_000
_SEPARATORS = str.maketrans("\\/:", "___")


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Entries whose name contains a text, each with the path of its folder. `is_complete`: there are no others."""

    entries: list[tuple[str, PodFile]]
    is_complete: bool


class FolderWalk:
    """The entries below a folder, each with the path of its folder. `left_out`: what the walk did not enter."""

    def __init__(self, backend: Backend, key: PodKey, path: str, *, seconds: float | None = None) -> None:
        self._backend, self._key, self._path = backend, key, path
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self.left_out: list[str] = []

    def entries(self) -> Iterator[tuple[str, PodFile]]:
        """Each folder before its content. Raises NoFilesError, NoSuchFileError about the first folder."""
        visited, waiting = 0, [(self._path, 0)]
        while waiting:
            folder, depth = waiting.pop()
            if self._is_late:  # of empty folders there is no entry
                self.left_out.append(folder)
                return
            try:
                found = list_folder(self._backend, self._key, folder, _MOST_VISITED)
            except NoSuchFileError as error:
                if depth == 0:
                    raise
                if isinstance(error, UnreadableFilesError):
                    self.left_out.append(folder)
                continue  # or the pod has deleted it meanwhile
            if not found.is_complete:
                self.left_out.append(folder)
            for entry in found.entries:
                visited += 1
                if visited > _MOST_VISITED or self._is_late:
                    self.left_out.append(folder)
                    return
                yield folder, entry
            inner = [one.path_below(folder) for one in found.entries if one.kind is FileKind.FOLDER and one.is_utf8]
            if depth == _DEEPEST:
                self.left_out += inner
            else:
                waiting += [(path, depth + 1) for path in reversed(inner)]

    @property
    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline


def find_files(backend: Backend, key: PodKey, path: str, text: str) -> FoundFiles:
    """The first 200 entries below a folder whose name contains the text, in any case of its letters.

    Raises NoFilesError, NoSuchFileError.
    """
    walk, wanted = FolderWalk(backend, key, path, seconds=_SEARCH_SECONDS), text.casefold()
    found: list[tuple[str, PodFile]] = []
    for folder, entry in walk.entries():
        if wanted in entry.name.casefold():
            if len(found) == _MOST_FOUND:
                return FoundFiles(found, is_complete=False)
            found.append((folder, entry))
    return FoundFiles(found, is_complete=not walk.left_out)


def archive(backend: Backend, key: PodKey, path: str) -> Iterator[bytes]:
    """The files below a folder as chunks of a zip archive. Its last file says what is missing, if something is.

    Raises NoFilesError, NoSuchFileError before the first chunk.
    """
    list_folder(backend, key, path)
    return filter(None, zipped(_files(backend, key, path), is_compressed=False))


def _files(backend: Backend, key: PodKey, path: str) -> Iterator[tuple[str, Pieces]]:
    """The files of the archive: a safe name, and a function that returns the content."""
    walk, count, size = FolderWalk(backend, key, path), 0, 0
    used: dict[str, int] = {}
    for folder, entry in walk.entries():
        if entry.kind is FileKind.FOLDER and entry.is_utf8:
            continue
        inner = entry.path_below(folder)
        if entry.kind is not FileKind.FILE or not entry.is_utf8:
            walk.left_out.append(inner)
            continue
        if count == _MOST_FILES or size + entry.size > _MOST_BYTES:
            walk.left_out.append(inner)
            break
        try:
            chunks, length = read_file(backend, key, inner)
        except (NoSuchFileError, UnknownPod, BackendError):
            walk.left_out.append(inner)
            continue
        count, size = count + 1, size + length
        yield _safe_name(inner.removeprefix(path).lstrip("/"), used), partial(iter, chunks)
    if walk.left_out:
        lines = [visible_name(one) for one in walk.left_out[:_MOST_NOTED]]
        if (more := len(walk.left_out) - _MOST_NOTED) > 0:
            lines.append(f"and {more} others")
        text = "Not in this archive (links, special files, or beyond its limits):\n" + "\n".join(lines) + "\n"
        yield _safe_name(_NOTE, used), partial(iter, [text.encode()])


def _safe_name(path: str, used: dict[str, int]) -> str:
    """A path that no program takes for another place, without control characters, different from those before.

    `used`: those, each with the last number that was added to it.
    """
    parts = [show_bidi_controls(part).translate(_SEPARATORS) for part in path.split("/")]
    name = "/".join("".join(sign if sign.isprintable() else "_" for sign in part) for part in parts)
    number, found = used.get(name, 1), name
    while found in used:
        number += 1
        found = f"{name}~{number}"
    used[name] = number
    used.setdefault(found, 1)
    return found
