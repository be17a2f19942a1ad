"""What backends keep on disk that cannot be recreated: it belongs into a backup."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hekla.backends.registry import kinds


def durable_files(home: Path) -> Iterator[Path]:
    """The files, below the folder in which all backends of this Hekla keep theirs."""
    for pattern in (pattern for kind in kinds().values() for pattern in kind.durable_files):
        for path in _found([home], pattern.split("/")):
            if path.is_file() and not path.is_symlink():
                yield path


def _found(folders: Iterable[Path], parts: Sequence[str]) -> Iterator[Path]:
    """Folder by folder, since a glob of the whole fails where one of them is deleted meanwhile."""
    part, *rest = parts
    for folder in folders:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            found = sorted(folder.glob(part))
            yield from _found(found, rest) if rest else found
