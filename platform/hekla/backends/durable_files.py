"""Files that cannot be recreated, so they belong in a backup: those of backends, and recordings of terminals."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hekla.backends.registry import kinds

_OF_THE_CONSOLE = ("recordings/*.cast",)


def durable_files(home: Path) -> Iterator[Path]:
    """The durable files below `home`."""
    of_backends = (pattern for kind in kinds().values() for pattern in kind.durable_files)
    for pattern in (*of_backends, *_OF_THE_CONSOLE):
        for path in _found([home], pattern.split("/")):
            if path.is_file():
                yield path


def _found(folders: Iterable[Path], parts: Sequence[str]) -> Iterator[Path]:
    """Match one folder at a time: a glob of the whole path fails if a folder is deleted during it. Follows no link."""
    part, *rest = parts
    for folder in folders:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            found = sorted(path for path in folder.glob(part) if not path.is_symlink())
            yield from _found(found, rest) if rest else found
