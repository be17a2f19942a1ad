"""The files of recordings, in the data folder of the console. All web processes use it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from django.conf import settings

from hekla.lib.asciicast import LONGEST_EVENT

_SUFFIX = ".cast"
_READ_BYTES = 256 * 1024


def folder() -> Path:
    """Where the files are. Only the console's own user can read it."""
    return Path(settings.HEKLA_HOME) / "recordings"


def append(uid: UUID, data: bytes) -> None:
    """Add to a recording, or begin it. Raises OSError."""
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(_path(uid), flags, 0o600), "ab", buffering=0) as file:
        file.write(data)


def size(uid: UUID) -> int:
    """The bytes of a recording; 0 if its file is gone."""
    try:
        return _path(uid).stat().st_size
    except OSError:
        return 0


def read(uid: UUID, begin: int, end: int) -> Iterator[bytes]:
    """The bytes of a recording from `begin` to `end`, in pieces. Nothing if its file is gone."""
    with suppress(OSError), _path(uid).open("rb") as file:
        file.seek(begin)
        while begin < end and (piece := file.read(min(_READ_BYTES, end - begin))):
            begin += len(piece)
            yield piece


def lines(uid: UUID) -> Iterator[bytes]:
    """The whole lines after the header. The last one of a recording that goes on may not be complete yet."""
    with suppress(OSError), _path(uid).open("rb") as file:
        file.readline(LONGEST_EVENT)
        while line := file.readline(LONGEST_EVENT):
            if line.endswith(b"\n"):
                yield line


def remove(uid: UUID) -> None:
    """Delete the file of a recording."""
    _path(uid).unlink(missing_ok=True)


def stored(before: float) -> Iterator[UUID]:
    """The recordings with a file that nobody has written to since then (seconds since 1970)."""
    with suppress(OSError):
        for path in folder().iterdir():
            with suppress(ValueError, OSError):
                if path.suffix == _SUFFIX and path.stat().st_mtime < before:
                    yield UUID(hex=path.stem)


def _path(uid: UUID) -> Path:
    return folder() / f"{uid.hex}{_SUFFIX}"
