"""Writing files for people into the folders of pods, which may change them meanwhile.

Each step opens every part of the path below the folder before it and follows no link of the pod. The owner of what is
written is the owner of the working folder, so a pod can use and delete it.
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator

from hekla.backends.base import PodKey
from hekla.backends.file_paths import parts_of
from hekla.backends.files import NoSuchFileError
from hekla.backends.local import files
from hekla.backends.local.pod_folder import PodFolder
from hekla.backends.uploads import (
    ANYTHING,
    MOST_BYTES,
    DraftFile,
    DraftLostError,
    FileConflictError,
    NoRoomError,
)

_DRAFT = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE, _PERMISSIONS = 0o644, 0o777
_CHUNK_BYTES = 1024 * 1024
_LEAST_FREE_BYTES = 2**30
"""Of the disk, for what the pods themselves write."""


class LocalUploads:
    """The facet of the local backend. `folder_of`: the folder of a pod; it raises UnknownPod."""

    def __init__(self, folder_of: Callable[[PodKey], PodFolder]) -> None:
        self._folder_of = folder_of

    def create_draft(self, draft: DraftFile, size: int, *, replaces: str) -> str:
        """Make an empty draft beside its target."""
        folder, parts = self._folder_of(draft.key), parts_of(draft.path)
        if not parts:
            raise NoSuchFileError(draft.path)
        with files.opened(folder, parts[:-1], is_created=True) as place:
            _require_expected(place, parts[-1], replaces)
            _require_room(place, size)
            handle = os.open(draft.name, _DRAFT | os.O_CREAT | os.O_EXCL, _MODE, dir_fd=place)
            try:
                files.give(handle, folder)
                return _mark(os.fstat(handle))
            finally:
                os.close(handle)

    def append(self, draft: DraftFile, offset: int, data: bytes) -> None:
        """Write the bytes at this offset, to the disk. Other uploads may have filled it since this one began."""
        with self._draft(draft, _DRAFT) as (place, handle):
            _require_room(place, len(data))
            rest = memoryview(data)
            while rest:
                written = os.pwrite(handle, rest, offset)
                offset, rest = offset + written, rest[written:]
            os.fsync(handle)

    def finish(self, draft: DraftFile, size: int, *, replaces: str) -> str:
        """Name the draft like its target. What has the name afterwards is what was hashed."""
        try:
            return self._name_draft(draft, size, replaces)
        except (DraftLostError, FileConflictError):
            if (digest := self._named(draft, size)) is None:
                raise
            return digest

    def _name_draft(self, draft: DraftFile, size: int, replaces: str) -> str:
        name = draft.path.rpartition("/")[2]
        with self._draft(draft, files.FILE) as (place, handle):
            if os.fstat(handle).st_size != size:
                raise DraftLostError(draft.path)
            if not replaces:
                _require_expected(place, name, replaces)  # before a large file is read in vain
            digest = _sha256(handle, size)
            if replaces:
                _require_expected(place, name, replaces)
                _copy_mode(place, name, handle)
                with _conflicts(draft):
                    os.rename(draft.name, name, src_dir_fd=place, dst_dir_fd=place)
            else:
                with _conflicts(draft):
                    os.link(draft.name, name, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
                os.unlink(draft.name, dir_fd=place)
            if _mark(os.stat(name, dir_fd=place, follow_symlinks=False)) != draft.mark:
                raise DraftLostError(draft.path)
            os.fsync(place)
        return digest

    def _named(self, draft: DraftFile, size: int) -> str | None:
        """The SHA-256 of the target if it is the draft: an earlier call, or one at the same time, has named it."""
        parts = parts_of(draft.path)
        with (
            contextlib.suppress(NoSuchFileError, OSError),
            files.opened(self._folder_of(draft.key), parts[:-1]) as place,
        ):
            handle = os.open(parts[-1], files.FILE, dir_fd=place)
            try:
                facts = os.fstat(handle)
                if not stat.S_ISREG(facts.st_mode) or facts.st_size != size or _mark(facts) != draft.mark:
                    return None
                with contextlib.suppress(OSError):  # the call before died between two steps
                    os.unlink(draft.name, dir_fd=place)
                return _sha256(handle, size)
            finally:
                os.close(handle)
        return None

    def discard(self, draft: DraftFile) -> None:
        """Delete the draft, if it is there."""
        parts = parts_of(draft.path)
        with (
            contextlib.suppress(NoSuchFileError, OSError),
            files.opened(self._folder_of(draft.key), parts[:-1]) as place,
        ):
            os.unlink(draft.name, dir_fd=place)

    @contextlib.contextmanager
    def _draft(self, draft: DraftFile, flags: int) -> Iterator[tuple[int, int]]:
        """Handles of the draft's folder and of the draft. Raises DraftLostError."""
        with files.opened(self._folder_of(draft.key), parts_of(draft.path)[:-1]) as place:
            try:
                handle = os.open(draft.name, flags, dir_fd=place)
            except OSError as error:
                raise DraftLostError(draft.path) from error
            try:
                facts = os.fstat(handle)
                if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1 or _mark(facts) != draft.mark:
                    raise DraftLostError(draft.path)
                yield place, handle
            finally:
                os.close(handle)


@contextlib.contextmanager
def _conflicts(draft: DraftFile) -> Iterator[None]:
    """Raise FileConflictError or DraftLostError for what the system says about the last step."""
    try:
        yield
    except (FileExistsError, IsADirectoryError) as error:
        raise FileConflictError(draft.path) from error
    except FileNotFoundError as error:
        raise DraftLostError(draft.path) from error


def _require_room(place: int, size: int) -> None:
    """Raise NoRoomError if the disk of this folder had too little room behind so many bytes."""
    disk = os.fstatvfs(place)
    if disk.f_bavail * disk.f_frsize - size < _LEAST_FREE_BYTES:
        raise NoRoomError


def _require_expected(place: int, name: str, replaces: str) -> None:
    """Raise FileConflictError unless the target may be replaced as it is now."""
    try:
        facts = os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        if replaces in ("", ANYTHING):
            return
        raise FileConflictError(name) from None
    except OSError as error:
        raise NoSuchFileError(name) from error
    if not replaces or not (stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)):
        raise FileConflictError(name)
    if replaces != ANYTHING:
        try:
            handle = os.open(name, files.FILE, dir_fd=place)
        except OSError as error:
            raise FileConflictError(name) from error
        try:
            found = os.fstat(handle)
            is_file = stat.S_ISREG(found.st_mode) and found.st_size <= MOST_BYTES
            if not is_file or _sha256(handle, found.st_size) != replaces:
                raise FileConflictError(name)
        finally:
            os.close(handle)


def _copy_mode(place: int, name: str, handle: int) -> None:
    """Give the new file the permissions of the one that it replaces: a script stays executable."""
    with contextlib.suppress(FileNotFoundError):
        facts = os.stat(name, dir_fd=place, follow_symlinks=False)
        if stat.S_ISREG(facts.st_mode):
            os.fchmod(handle, stat.S_IMODE(facts.st_mode) & _PERMISSIONS)


def _sha256(handle: int, size: int) -> str:
    """Of the first `size` bytes: the pod may append to the file without end, or make it larger than any disk."""
    digest, offset = hashlib.sha256(), 0
    while offset < size and (chunk := os.pread(handle, min(_CHUNK_BYTES, size - offset), offset)):
        digest.update(chunk)
        offset += len(chunk)
    return digest.hexdigest()


def _mark(facts: os.stat_result) -> str:
    return f"{facts.st_dev}:{facts.st_ino}"
