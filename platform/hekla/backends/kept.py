"""What backends keep on disk that cannot be made again: it belongs into a backup."""

from collections.abc import Iterator
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
        for path in home.glob(pattern):
            if path.is_file() and not path.is_symlink():
                yield path
