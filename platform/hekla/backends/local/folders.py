"""Create folders for a pod, and reject paths that are impossible."""

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from hekla.backends.base import StartRefused

_MAX_BYTES = 255
"""The limit for one part of a path, on common file systems."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER = frozenset({errno.ENOTDIR, errno.ELOOP})


def check(paths: Iterable[str]) -> None:
    """Raise StartRefused for a path that no file system accepts."""
    for path in paths:
        if any(len(os.fsencode(part)) > _MAX_BYTES for part in PurePosixPath(path).parts):
            raise StartRefused(f"Each part of a path may have {_MAX_BYTES} bytes: “{path[:80]}…”")


def create(root: Path, below: PurePosixPath, what: str, *, uid: int) -> None:
    """Create the folder if missing, part by part. Follows no links, as a running pod can have put them there.

    `uid`: the owner of what is created; 0 for the console's own. Raises OSError, and StartRefused about `what` if
    something else is in its place.
    """
    if below.is_absolute() or ".." in below.parts:
        raise StartRefused(f"{what} cannot be made: “{below}” leads elsewhere.")
    root.mkdir(parents=True, exist_ok=True)
    place = os.open(root, _FOLDER)
    try:
        for number, part in enumerate(below.parts, start=1):
            try:
                inner = _open_or_create(place, part, uid)
            except OSError as error:
                if error.errno not in _NO_FOLDER:
                    raise
                path = "/".join(below.parts[:number])
                raise StartRefused(f"{what} cannot be made: “{path}” is there and is no folder.") from error
            os.close(place)
            place = inner
    finally:
        os.close(place)


def _open_or_create(parent: int, name: str, uid: int) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
        if uid:
            os.chown(name, uid, uid, dir_fd=parent, follow_symlinks=False)
    return os.open(name, _FOLDER, dir_fd=parent)
