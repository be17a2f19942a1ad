"""Logs of ended pods, saved by Hekla, because Kubernetes deletes a pod's log together with the pod.

A log in the spool is complete, and shows that its pod has run, so the pod does not run again. A draft has the log of a
pod until the moment when Volcano was requested to delete it.
"""

import contextlib
import os
import shutil
from collections.abc import Set
from pathlib import Path

from hekla.backends.base import BackendError, PodKey
from hekla.backends.log_chunk import LogChunk


class Spool:
    """A folder with a subfolder for each job, and a file for each pod."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def has(self, key: PodKey) -> bool:
        """Whether this pod has ended and its log is saved."""
        return os.path.exists(f"{self._root}/{key.job}/{key.name}")  # called for each pod that starts

    def save(self, key: PodKey, text: bytes) -> None:
        """Save the complete log of a pod, unless one is saved already. Raises BackendError if writing fails."""
        path = self._path(key)
        if not path.exists():
            _write(path, text)
            self._draft(key).unlink(missing_ok=True)

    def draft(self, key: PodKey, text: bytes) -> None:
        """Save the log until now, replacing an earlier draft. Raises BackendError like `save`."""
        _write(self._draft(key), text)

    def promote_draft(self, key: PodKey) -> None:
        """Make the draft of a deleted pod, if any, its log."""
        if not self.has(key):
            with contextlib.suppress(FileNotFoundError):
                self._draft(key).replace(self._path(key))

    def read(self, key: PodKey, offset: int, limit: int) -> LogChunk:
        """A part of the log. Raises FileNotFoundError."""
        with self._path(key).open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            begin = log.seek(min(max(offset, 0), size))
            data = log.read(limit)
        return LogChunk(data, begin, begin + len(data), complete=begin + len(data) >= size)

    def jobs(self) -> Set[str]:
        """The jobs with logs."""
        return {entry.name for entry in self._root.iterdir()} if self._root.exists() else set()

    def remove(self, job: str) -> None:
        """Delete the logs of this job."""
        shutil.rmtree(self._root / job, ignore_errors=True)

    def _path(self, key: PodKey) -> Path:
        return self._root / key.job / key.name

    def _draft(self, key: PodKey) -> Path:
        return self._root / key.job / f".{key.name}.draft"


def _write(path: Path, text: bytes) -> None:
    """Write the file atomically. Raises BackendError."""
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.write_bytes(text)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BackendError(f"The log {path.name} cannot be kept: {error.strerror}") from error
