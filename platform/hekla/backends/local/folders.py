"""Folders that a pod is to find, and what keeps them from being made for good."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from hekla.backends.base import StartRefused

_MOST_BYTES = 255
"""Of one part of a path, on the file systems in use."""


def check(paths: Iterable[str]) -> None:
    """Raises StartRefused for a path that no file system takes."""
    for path in paths:
        if any(len(os.fsencode(part)) > _MOST_BYTES for part in PurePosixPath(path).parts):
            raise StartRefused(f"Each part of a path may have {_MOST_BYTES} bytes: “{path[:80]}…”")


def make(root: Path, below: PurePosixPath, what: str) -> None:
    """Make the folder unless it is there. Raises StartRefused, about `what`, where something is in its way; OSError."""
    try:
        (root / below).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        for part in (*reversed(below.parents), below):
            if os.path.lexists(root / part) and not os.path.isdir(root / part):
                raise StartRefused(f"{what} cannot be made: “{part}” is there and is no folder.") from error
        raise
