"""What pods wrote, kept by the console: Kubernetes forgets a pod's log together with the pod.

A log that is here is whole, and its pod has run: that it is here is also what keeps it from running again. Beside it
may stand a draft: what a pod had written when it was about to be ended by somebody who takes its log along.
"""

import contextlib
import os
import shutil
from collections.abc import Set
from pathlib import Path

from hekla.backends.base import BackendError, LogChunk, PodKey


class Spool:
    """A folder with a folder for each job, and in it a file for each pod."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def has(self, key: PodKey) -> bool:
        """Whether this pod has run and is over."""
        return os.path.exists(f"{self._root}/{key.job}/{key.name}")  # asked for each pod that starts

    def keep(self, key: PodKey, text: bytes) -> None:
        """All that it wrote; what was kept first stays. Raises BackendError where the disk does not take it."""
        path = self._path(key)
        if not path.exists():
            _write(path, text)
            self._draft(key).unlink(missing_ok=True)

    def draft(self, key: PodKey, text: bytes) -> None:
        """What it wrote until now, in place of what was drafted before. Raises BackendError as `keep` does."""
        _write(self._draft(key), text)

    def keep_draft(self, key: PodKey) -> None:
        """The pod is gone, and nobody can be asked any more: what was drafted of it, if anything, is all."""
        if not self.has(key):
            with contextlib.suppress(FileNotFoundError):
                self._draft(key).replace(self._path(key))

    def read(self, key: PodKey, offset: int, limit: int) -> LogChunk:
        """A part of it. Raises FileNotFoundError."""
        with self._path(key).open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            begin = log.seek(min(max(offset, 0), size))
            data = log.read(limit)
        return LogChunk(data, begin, begin + len(data), complete=begin + len(data) >= size)

    def jobs(self) -> Set[str]:
        """Those of which something is here."""
        return {entry.name for entry in self._root.iterdir()} if self._root.exists() else set()

    def remove(self, job: str) -> None:
        """Nothing of this job is left."""
        shutil.rmtree(self._root / job, ignore_errors=True)

    def _path(self, key: PodKey) -> Path:
        return self._root / key.job / key.name

    def _draft(self, key: PodKey) -> Path:
        return self._root / key.job / f".{key.name}.draft"


def _write(path: Path, text: bytes) -> None:
    """Whole or not at all."""
    begun = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        begun.write_bytes(text)
        begun.replace(path)
    except OSError as error:
        begun.unlink(missing_ok=True)
        raise BackendError(f"The log {path.name} cannot be kept: {error.strerror}") from error
