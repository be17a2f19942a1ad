"""Reading what a pod wrote below its working folder, without following any link that it may have put there.

Each part of a path is opened below the folder before it. Only the links that Hekla itself makes for volumes lead
elsewhere: their target lies in the folders of the volumes, from which it is opened, not through the link.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO

from hekla.backends.base import PodKey
from hekla.backends.file_paths import is_visible, parts_of
from hekla.backends.files import (
    MOST_ENTRIES,
    FileKind,
    FolderListing,
    FolderSize,
    NoSuchFileError,
    PodFile,
)
from hekla.backends.local import folder_size
from hekla.backends.local.pod_folder import PodFolder

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_READ = 20_000
"""Entries that are read to find the first by name; a larger folder is listed in no order."""
_LATEST = 2**33


class LocalFiles:
    """The facet of the local backend. `folder_of`: the folder of a pod; it raises UnknownPod."""

    def __init__(self, folder_of: Callable[[PodKey], PodFolder]) -> None:
        self._folder_of = folder_of

    def list_folder(self, key: PodKey, path: str, most: int = MOST_ENTRIES) -> FolderListing:
        """The content of a folder below the pod's working folder."""
        return list_folder(self._folder_of(key), path, most)

    def open_file(self, key: PodKey, path: str) -> BinaryIO:
        """A file below the pod's working folder."""
        return open_file(self._folder_of(key), path)

    def job_size(self, key: PodKey) -> FolderSize:
        """The room of the folders of all pods of the job, with their logs, and of what they share."""
        try:
            return folder_size.measure(os.path.dirname(self._folder_of(key).path))
        except OSError as error:
            raise NoSuchFileError(key.job) from error


def list_folder(folder: PodFolder, path: str, most: int = MOST_ENTRIES) -> FolderListing:
    """The content of a folder, at most `most` entries. Raises NoSuchFileError."""
    parts = parts_of(path)
    with opened(folder, parts) as place:
        names, is_complete = _names(place)
        found = [_entry(place, name) for name in names if is_visible(name, parts)]
        entries = [_as_volume(folder, place, one) for one in found if one is not None]
    entries.sort(key=lambda one: (one.kind is not FileKind.FOLDER, one.name))
    return FolderListing(entries[:most], is_complete and len(entries) <= most)


def open_file(folder: PodFolder, path: str) -> BinaryIO:
    """A regular file, open for reading. Raises NoSuchFileError."""
    parts = parts_of(path)
    if not parts:
        raise NoSuchFileError(path)
    with opened(folder, parts[:-1]) as place:
        try:
            handle = os.open(parts[-1], FILE, dir_fd=place)
        except OSError as error:
            raise NoSuchFileError(path) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NoSuchFileError(path)
    return os.fdopen(handle, "rb")


@contextlib.contextmanager
def opened(folder: PodFolder, parts: list[str], *, is_created: bool = False) -> Iterator[int]:
    """A handle of the folder. `is_created`: missing folders are made, for the pod. Raises NoSuchFileError."""
    try:
        place = os.open(folder.work, _FOLDER)
    except OSError as error:
        raise NoSuchFileError("/".join(parts)) from error
    try:
        for part in parts:
            if is_created:
                _make_folder(folder, place, part)
            inner = _enter(folder, place, part)
            os.close(place)
            place = inner
        yield place
    finally:
        os.close(place)


def give(handle: int, folder: PodFolder) -> None:
    """Make the pod's user the owner of an open file or folder, if that is not the console's own."""
    owner = os.stat(folder.work, follow_symlinks=False)
    if owner.st_uid != os.geteuid():
        os.fchown(handle, owner.st_uid, owner.st_gid)


def _make_folder(folder: PodFolder, place: int, name: str) -> None:
    """Raises NoSuchFileError for a name that no folder can have."""
    try:
        os.mkdir(name, dir_fd=place)
    except FileExistsError:
        return
    except OSError as error:
        raise NoSuchFileError(name) from error
    with contextlib.suppress(OSError):  # the pod has replaced it meanwhile
        handle = os.open(name, _FOLDER, dir_fd=place)
        try:
            give(handle, folder)
        finally:
            os.close(handle)


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
