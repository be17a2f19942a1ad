"""Writing a file into the folders of a pod, in pieces that may arrive over days.

An unfinished file is a draft in the folder of its target. The pod is hostile: it may delete, replace or change the
draft. Its mark, which the backend returns, tells the draft from anything else that has its name; a replaced one is
refused. When the draft is complete, it gets the name of the target in one step.
"""

from dataclasses import dataclass
from typing import Protocol

from hekla.backends.base import PodKey

DRAFT_PREFIX = ".hekla-upload-"
"""The beginning of the names of drafts. Names like this exist for nobody."""
ANYTHING = "*"
"""As `replaces`: whatever file has the name."""
MOST_BYTES = 16 * 2**30
"""Of a file, and of one that is replaced by its SHA-256: a pod makes files of any size that take no room."""


@dataclass(frozen=True, slots=True)
class DraftFile:
    """An unfinished file of a pod. `path`: of the target. `name`: of the draft, beside it. `mark`: see above."""

    key: PodKey
    path: str
    name: str
    mark: str = ""


class DraftLostError(Exception):
    """The draft is gone, or something else is in its place."""


class FileConflictError(Exception):
    """The target exists and may not be replaced, or has another content than expected."""


class NoRoomError(Exception):
    """The disk would be too full."""


class WritableFiles(Protocol):
    """Files that people may write into the folders of pods.

    All methods raise UnknownPod, OSError of the disk, and BackendError if the pod cannot be reached.

    `replaces`: the SHA-256 of the target that may be replaced; `ANYTHING`; or empty: the target must not exist.
    """

    def create_draft(self, draft: DraftFile, size: int, *, replaces: str) -> str:
        """Make an empty draft, with missing folders above it, and return its mark.

        Raises NoSuchFileError if the path is impossible, FileConflictError, NoRoomError.
        """

    def append(self, draft: DraftFile, offset: int, data: bytes) -> None:
        """Write the bytes to the disk at this offset. Raises NoSuchFileError, DraftLostError, NoRoomError."""

    def finish(self, draft: DraftFile, size: int, *, replaces: str) -> str:
        """Give the draft the name of its target, and return its SHA-256. A second call returns the same.

        A file that is replaced hands on its permissions.
        Raises NoSuchFileError, DraftLostError, FileConflictError.
        """

    def discard(self, draft: DraftFile) -> None:
        """Delete the draft, if it is there."""
