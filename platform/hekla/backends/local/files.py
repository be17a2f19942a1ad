"""Reading what a pod wrote below its working folder, without following any link that it may have put there.

Each part of a path is opened below the folder before it. Only the links that Hekla itself makes for volumes lead
elsewhere: their target lies in the folders of the volumes, from which it is opened, not through the link.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO

from hekla.backends.files import MOST_DEPTH, MOST_ENTRIES, FileKind, FolderListing, NoSuchFileError, PodFile
from hekla.backends.local.pod_folder import PodFolder
from hekla.domain.frameworks.ssh import FOLDER as SSH_FOLDER

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SECRET = frozenset({SSH_FOLDER})
"""Parts of the working folder that hold secrets of the job."""
_MOST_READ = 20_000
"""Entries that are read to find the first by name; a larger folder is listed in no order."""
_LATEST = 2**33


def list_folder(folder: PodFolder, path: str) -> FolderListing:
    """The content of a folder. Raises NoSuchFileError."""
    parts = _parts(path)
    with _opened(folder, parts) as place:
        names, is_complete = _names(place)
        hidden = frozenset() if parts else _SECRET
        found = [_entry(place, name) for name in names if name not in hidden]
        entries = [_as_volume(folder, place, one) for one in found if one is not None]
    entries.sort(key=lambda one: (one.kind is not FileKind.FOLDER, one.name))
    return FolderListing(entries[:MOST_ENTRIES], is_complete and len(entries) <= MOST_ENTRIES)


def open_file(folder: PodFolder, path: str) -> BinaryIO:
    """A regular file, open for reading. Raises NoSuchFileError."""
    parts = _parts(path)
    if not parts:
        raise NoSuchFileError(path)
    with _opened(folder, parts[:-1]) as place:
        try:
            handle = os.open(parts[-1], _FILE, dir_fd=place)
        except OSError as error:
            raise NoSuchFileError(path) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NoSuchFileError(path)
    return os.fdopen(handle, "rb")


def _parts(path: str) -> list[str]:
    parts = path.split("/") if path else []
    impossible = any(part in ("", ".", "..") or "\0" in part for part in parts)
    if impossible or len(parts) > MOST_DEPTH or (parts and parts[0] in _SECRET):
        raise NoSuchFileError(path)
    return parts


@contextlib.contextmanager
def _opened(folder: PodFolder, parts: list[str]) -> Iterator[int]:
    """A handle of the folder. Raises NoSuchFileError."""
    try:
        place = os.open(folder.work, _FOLDER)
    except OSError as error:
        raise NoSuchFileError("/".join(parts)) from error
    try:
        for part in parts:
            inner = _enter(folder, place, part)
            os.close(place)
            place = inner
        yield place
    finally:
        os.close(place)


def _enter(folder: PodFolder, place: int, part: str) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=place)
    except OSError as error:
        if (volume := _volume(folder, place, part)) is None:
            raise NoSuchFileError(part) from error
        return volume


def _volume(folder: PodFolder, place: int, name: str) -> int | None:
    """A handle of the volume to which Hekla's own link of that name leads; None for any other entry."""
    with contextlib.suppress(OSError):
        target = os.readlink(name, dir_fd=place)
        for root in (folder.volumes, folder.claims):
            if target.startswith(f"{root}/"):
                return _below(root, os.path.relpath(target, root).split("/"))
    return None


def _below(root: str, parts: list[str]) -> int | None:
    """A handle of a folder of the volumes of this pod; None if a link is in its way. Raises OSError."""
    if any(part in ("", ".", "..") for part in parts):
        return None
    place = os.open(root, _FOLDER)
    try:
        for part in parts:
            inner = os.open(part, _FOLDER, dir_fd=place)
            os.close(place)
            place = inner
    except OSError:
        os.close(place)
        raise
    return place


def _names(place: int) -> tuple[list[str], bool]:
    names: list[str] = []
    with os.scandir(place) as entries:
        for entry in entries:
            if len(names) == _MOST_READ:
                return names, False
            names.append(entry.name)
    return sorted(names), True


def _entry(place: int, name: str) -> PodFile | None:
    try:
        facts = os.stat(name, dir_fd=place, follow_symlinks=False)
    except OSError:  # the pod has deleted it meanwhile
        return None
    changed_at = datetime.fromtimestamp(min(max(facts.st_mtime, 0), _LATEST), tz=UTC)
    return PodFile(name, _kind(facts.st_mode), facts.st_size, changed_at)


def _kind(mode: int) -> FileKind:
    if stat.S_ISDIR(mode):
        return FileKind.FOLDER
    if stat.S_ISREG(mode):
        return FileKind.FILE
    return FileKind.LINK if stat.S_ISLNK(mode) else FileKind.OTHER


def _as_volume(folder: PodFolder, place: int, entry: PodFile) -> PodFile:
    """The entry, as a folder if it is Hekla's own link to a volume."""
    handle = _volume(folder, place, entry.name) if entry.kind is FileKind.LINK else None
    if handle is None:
        return entry
    os.close(handle)
    return PodFile(entry.name, FileKind.FOLDER, entry.size, entry.changed_at)
