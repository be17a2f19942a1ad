"""How much room a folder takes, although pods may change it meanwhile, and make folders without end.

Every folder is opened below the one before it, so no link leads elsewhere. Folders of other disks do not count.
"""

import os
import stat
import time

from hekla.backends.files import FolderSize

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK_BYTES = 512
_MOST_ENTRIES, _MOST_SECONDS, _DEEPEST = 500_000, 4.0, 48


def measure(path: str) -> FolderSize:
    """The room that the folder takes with all below it. Raises OSError if it cannot be opened."""
    walk, place = _Walk(), os.open(path, _FOLDER)
    try:
        walk.visit(place, 0, os.fstat(place).st_dev)
    finally:
        os.close(place)
    return FolderSize(walk.size, walk.files, walk.is_complete)


class _Walk:
    """What was counted so far, within the limits of entries, depth and time."""

    def __init__(self) -> None:
        self._deadline = time.monotonic() + _MOST_SECONDS
        self._visited = self.size = self.files = 0
        self.is_complete = True

    def visit(self, folder: int, depth: int, disk: int) -> None:
        """Count what is in this open folder and below it."""
        inner = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if not self._may_go_on():
                    return
                try:
                    facts = entry.stat(follow_symlinks=False)
                except OSError:  # the pod has deleted it meanwhile
                    continue
                if stat.S_ISDIR(facts.st_mode):
                    inner.append(entry.name)
                    self.size += facts.st_blocks * _BLOCK_BYTES
                else:
                    self.files += 1
                    self.size += facts.st_blocks * _BLOCK_BYTES // max(1, facts.st_nlink)
        for name in inner:
            self._enter(folder, name, depth, disk)

    def _may_go_on(self) -> bool:
        self._visited += 1
        self.is_complete = self.is_complete and self._visited <= _MOST_ENTRIES and time.monotonic() < self._deadline
        return self.is_complete

    def _enter(self, folder: int, name: str, depth: int, disk: int) -> None:
        if depth == _DEEPEST or not self._may_go_on():
            self.is_complete = False
            return
        try:
            place = os.open(name, _FOLDER, dir_fd=folder)
        except OSError:  # the pod has deleted or replaced it, or closed it to others
            return
        try:
            if os.fstat(place).st_dev == disk:
                self.visit(place, depth + 1, disk)
        except OSError:
            self.is_complete = False
        finally:
            os.close(place)
