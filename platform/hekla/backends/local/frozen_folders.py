"""Folders of ended pods that another pod continues in, or that stay until somebody has looked at them.

Each pod of this machine has a folder of its own, which outlives it anyway. A pod that continues in it gets that very
folder as its working folder, and the volumes of the ended pod. The ended pod may have put anything there: links, files
without end, millions of names. So nothing here follows a link or reads a file, and every walk is bounded.
"""

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from hekla.backends.base import BackendError, PodKey, PodOrder, StartRefused, UnknownPod
from hekla.backends.local import names, removal
from hekla.backends.local.pod_folder import FINAL, PodFolder

FolderOf = Callable[[PodKey], PodFolder]
"""The folder of a pod; raises UnknownPod."""
MOST_ENTRIES, MOST_DEPTH = 100_000, 64
"""What is measured of a folder. Beyond it, the folder counts with what was found so far."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 512


class LocalFrozenFolders:
    """Implements `frozen.FrozenFolders`."""

    def __init__(self, folder_of: FolderOf) -> None:
        self._folder_of = folder_of

    def measure(self, key: PodKey) -> int:
        """The disk space of the working folder and of the pod's own volumes."""
        try:
            folder = self._folder_of(key)
        except UnknownPod:
            return 0
        meter = _Meter()
        for path in (folder.work, folder.volumes):
            with contextlib.suppress(OSError):
                meter.measure(os.open(path, _FOLDER))
        return meter.found

    def release(self, key: PodKey) -> None:
        """Delete the working folder, the volumes that only this pod had, and its temporary files."""
        try:
            folder = self._folder_of(key)
        except UnknownPod:
            return
        if folder.holder() is not None and not _has_ended(folder):
            raise BackendError("The pod has not ended yet")
        for path in (folder.work, folder.volumes, folder.tmp):
            try:
                removal.delete(Path(path))
            except OSError as error:
                raise BackendError(f"The folder {path} could not be deleted: {error}") from error


def source_of(order: PodOrder, folder_of: FolderOf, *, in_containers: bool) -> PodFolder | None:
    """The folder of the ended pod whose files this one gets; None if it has its own.

    Raises StartRefused if they are not there, BackendError while that pod runs.
    """
    if order.frozen is None:
        return None
    try:
        folder = folder_of(order.frozen)
        ended = folder.order()
    except (UnknownPod, ValueError) as error:
        raise StartRefused(f"The files of {order.frozen.name} are not there: {error}") from error
    if order.frozen.tenant != order.key.tenant:
        raise StartRefused(f"The files of {order.frozen.name} belong to another tenant")
    if not _has_ended(folder):
        raise BackendError(f"The pod {order.frozen.name} has not ended yet")
    if ended is None or os.path.islink(folder.work) or not os.path.isdir(folder.work):
        raise StartRefused(f"The files of {order.frozen.name} are deleted")
    if (ended.get("container") is not None) != in_containers:  # what one may write is the other's to trust
        raise StartRefused("Since that pod ran, the pods of this cluster have changed between containers and processes")
    return folder


def with_its_files(folder_of: FolderOf) -> FolderOf:
    """The folder of a pod with the files that it has: those of an ended pod, if it continues in its folder."""

    def find(key: PodKey) -> PodFolder:
        folder = folder_of(key)
        if not os.path.isdir(folder.work):
            with contextlib.suppress(ValueError, UnknownPod):
                order = folder.order()
                if order and (source := order.get("frozen")):
                    return folder.with_files_of(folder_of(names.key_of(str(source))))
        return folder

    return find


def _has_ended(folder: PodFolder) -> bool:
    """Whether the end of the pod is recorded. None of its processes is left then."""
    status = folder.status()
    return status is not None and status["phase"] in FINAL


class _Meter:
    """Adds up the disk space of folders. A file with several names counts once."""

    def __init__(self) -> None:
        self.found = 0
        self._left = MOST_ENTRIES
        self._counted: set[tuple[int, int]] = set()

    def measure(self, place: int, depth: int = 0) -> None:
        """Add the content of an open folder, and close it."""
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if self._left <= 0:
                        return
                    self._left -= 1
                    with contextlib.suppress(OSError):
                        self._add(place, entry.name, depth)
        finally:
            os.close(place)

    def _add(self, place: int, name: str, depth: int) -> None:
        facts = os.stat(name, dir_fd=place, follow_symlinks=False)
        if facts.st_nlink > 1 and not stat.S_ISDIR(facts.st_mode):
            if (facts.st_dev, facts.st_ino) in self._counted:
                return
            self._counted.add((facts.st_dev, facts.st_ino))
        self.found += facts.st_blocks * _BLOCK
        if stat.S_ISDIR(facts.st_mode) and depth < MOST_DEPTH:
            self.measure(os.open(name, _FOLDER, dir_fd=place), depth + 1)
