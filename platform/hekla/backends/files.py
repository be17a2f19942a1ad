"""Files that pods wrote, as a backend offers them for reading.

Pods are hostile: they may put links, pipes and folders without end in place of what they wrote, change them while
somebody reads, and choose any name. A backend opens every part of a path in turn and follows no link.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO, Protocol

from hekla.backends.base import Backend, BackendError, PodKey, UnknownPod
from hekla.lib.text import show_bidi_controls

MOST_ENTRIES = 500
"""Entries of a folder that are listed."""
MOST_DEPTH = 40
"""Parts of a path."""
_CHUNK_BYTES = 256 * 1024


class FileKind(StrEnum):
    """What is in a folder. link: a symbolic link, which is not followed. other: a pipe, socket or device."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "link"
    OTHER = "other"


def visible_name(name: str) -> str:
    """A name for people, with control characters and bytes that are no UTF-8 escaped."""
    signs = show_bidi_controls(name.encode(errors="backslashreplace").decode())
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in signs)


@dataclass(frozen=True, slots=True)
class PodFile:
    """An entry of a folder. `name`: as the pod wrote it, with surrogates for bytes that are no UTF-8."""

    name: str
    kind: FileKind
    size: int
    changed_at: datetime

    @property
    def is_utf8(self) -> bool:
        """Only such a name can be requested."""
        return not any("\ud800" <= sign <= "\udfff" for sign in self.name)

    @property
    def text(self) -> str:
        """The name for people."""
        return visible_name(self.name)

    def path_below(self, folder: str) -> str:
        """The path of this entry of a folder with the path `folder`."""
        return f"{folder}/{self.name}" if folder else self.name


@dataclass(frozen=True, slots=True)
class FolderListing:
    """A folder: folders first, both by name. `is_complete`: False if it has more entries than wanted."""

    entries: Sequence[PodFile]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class FolderSize:
    """The room that a folder takes on its disk. `is_complete`: False if not everything in it was counted."""

    size: int
    files: int
    is_complete: bool


class NoSuchFileError(Exception):
    """There is no such folder or file, or something else is in its place."""


class UnreadableFilesError(NoSuchFileError):
    """The backend cannot read the files of the pod now; its text says why, for people."""


class NoFilesError(Exception):
    """The backend does not offer the files of its pods."""


class PodFiles(Protocol):
    """The files below the working folders of pods. They stay until the job is deleted, or only while the pod runs.

    Each method may raise BackendError too.

    A path has parts between slashes; an empty path is the working folder. Volumes of the job are folders where the pod
    mounts them. Files that only the pod may read because Hekla wrote secrets into them do not exist here.
    """

    def list_folder(self, key: PodKey, path: str, most: int = MOST_ENTRIES) -> FolderListing:
        """The content of a folder, at most `most` entries. Raises NoSuchFileError, UnknownPod."""

    def open_file(self, key: PodKey, path: str) -> BinaryIO:
        """A regular file, open for reading; the caller closes it. Raises NoSuchFileError, UnknownPod."""

    def job_size(self, key: PodKey) -> FolderSize | None:
        """The room that all files of the pod's job take, in bounded time; None if that is unknown.

        Raises NoSuchFileError, UnknownPod.
        """


def job_size(backend: Backend, key: PodKey) -> FolderSize | None:
    """The room that all files of the pod's job take; None if its backend does not know it."""
    try:
        return backend.files.job_size(key) if backend.files else None
    except (UnknownPod, BackendError, NoSuchFileError):
        return None


def list_folder(backend: Backend, key: PodKey, path: str, most: int = MOST_ENTRIES) -> FolderListing:
    """The content of a folder of a pod, at most `most` entries. Raises NoFilesError, NoSuchFileError."""
    with _errors_about(path):
        return _facet(backend).list_folder(key, path, most)


def read_file(backend: Backend, key: PodKey, path: str) -> tuple[Iterator[bytes], int]:
    """A file of a pod in chunks, and its size in bytes now: no more is read. Raises NoFilesError, NoSuchFileError."""
    file, size = _open(backend, key, path)
    return _chunks(file, size), size


def read_head(backend: Backend, key: PodKey, path: str, most: int) -> tuple[bytes, int]:
    """The first bytes of a file of a pod, at most `most`, and its size now. Raises NoFilesError, NoSuchFileError."""
    file, size = _open(backend, key, path)
    with file, _errors_about(path):
        return file.read(most), size


def _open(backend: Backend, key: PodKey, path: str) -> tuple[BinaryIO, int]:
    with _errors_about(path):
        file = _facet(backend).open_file(key, path)
    size = file.seek(0, 2)
    file.seek(0)
    return file, size


@contextlib.contextmanager
def _errors_about(path: str) -> Iterator[None]:
    """Errors of the backend as those of this module."""
    try:
        yield
    except UnknownPod as error:
        raise NoSuchFileError(path) from error
    except BackendError as error:
        raise UnreadableFilesError(str(error)) from error


def _facet(backend: Backend) -> PodFiles:
    if backend.files is None:
        raise NoFilesError
    return backend.files


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    with file:
        while size > 0 and (chunk := file.read(min(size, _CHUNK_BYTES))):
            size -= len(chunk)
            yield chunk
