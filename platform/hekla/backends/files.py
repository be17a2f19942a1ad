"""Files that pods wrote, as a backend offers them for reading.

Pods are hostile: they may put links, pipes and folders without end in place of what they wrote, change them while
somebody reads, and choose any name. A backend opens every part of a path in turn and follows no link.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO, Protocol

from hekla.backends.base import PodKey

MOST_ENTRIES = 500
"""Entries of a folder that are listed."""
MOST_DEPTH = 40
"""Parts of a path."""


class FileKind(StrEnum):
    """What is in a folder. link: a symbolic link, which is not followed. other: a pipe, socket or device."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class PodFile:
    """An entry of a folder. `name`: as the pod wrote it, with surrogates for bytes that are no UTF-8."""

    name: str
    kind: FileKind
    size: int
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class FolderListing:
    """A folder: folders first, both by name. `is_complete`: False if it has more entries than `MOST_ENTRIES`."""

    entries: Sequence[PodFile]
    is_complete: bool


class NoSuchFileError(Exception):
    """There is no such folder or file, or something else is in its place."""


class PodFiles(Protocol):
    """The files below the working folders of pods. They stay until the job is deleted.

    A path has parts between slashes; an empty path is the working folder. Volumes of the job are folders where the pod
    mounts them. Files that only the pod may read because Hekla wrote secrets into them do not exist here.
    """

    def list_folder(self, key: PodKey, path: str) -> FolderListing:
        """The content of a folder. Raises NoSuchFileError, UnknownPod."""

    def open_file(self, key: PodKey, path: str) -> BinaryIO:
        """A regular file, open for reading; the caller closes it. Raises NoSuchFileError, UnknownPod."""
