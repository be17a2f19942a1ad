"""Create folders for a pod, and reject paths that are impossible."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from hekla.backends.base import StartRefused

_MAX_BYTES = 255
"""The limit for one part of a path, on common file systems."""


def check(paths: Iterable[str]) -> None:
    """Raise StartRefused for a path that no file system accepts."""
    for path in paths:
        if any(len(os.fsencode(part)) > _MAX_BYTES for part in PurePosixPath(path).parts):
            raise StartRefused(f"Each part of a path may have {_MAX_BYTES} bytes: “{path[:80]}…”")


def create(root: Path, below: PurePosixPath, what: str) -> None:
    """Create the folder if missing. Raises OSError, and StartRefused about `what` if a file is in its place."""
    try:
        (root / below).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        for part in (*reversed(below.parents), below):
            if os.path.lexists(root / part) and not os.path.isdir(root / part):
                raise StartRefused(f"{what} cannot be made: “{part}” is there and is no folder.") from error
        raise
