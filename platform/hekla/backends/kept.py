"""What backends keep on disk that cannot be made again: it belongs into a backup."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_LASTING = (
    *("local/*/pods/*/*/log", "local/*/pods/*/*/status.json"),
    *("kubernetes/*/logs/*/*", "kubeconfigs/*"),
    "simulated/*/journal.jsonl",
)
"""What pods wrote and how they ended, and the keys to clusters. The folders in which pods work are theirs, and may be
of any size."""


def lasting_files(home: Path) -> Iterator[Path]:
    """The files, below the folder that all backends of this Hekla keep theirs in."""
    for pattern in _LASTING:
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
