"""Delete the files of a job, except the log and the final status of each pod.

All functions here may be interrupted and repeated.
"""

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

from hekla.backends.base import BackendError
from hekla.backends.local import cgroups
from hekla.backends.local.pod_folder import CLAIMS, RUN, PodFolder

_ROUNDS = 3
_DRAFT = ".draft-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_all_but_log(folder: PodFolder) -> None:
    """Delete everything of an ended pod except its log and status. Raises BackendError."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        order = folder.order()
        for group in order["groups"] if order else ():
            cgroups.kill(group)
    for entry in os.scandir(folder.path):
        if entry.path not in folder.lasting:
            delete(Path(entry.path))


def remove_leftovers(job: Path) -> None:
    """Delete what its pods share, and unfinished folders of writers that died. Raises BackendError."""
    for path in (job / CLAIMS, job / RUN, *job.glob(f"{_DRAFT}*")):
        delete(path)


def holds_more_than_logs(job: Path) -> bool:
    """Whether the job's folder has files that must be deleted with the job."""
    with contextlib.suppress(FileNotFoundError):
        for pod in os.scandir(job):
            lasting = PodFolder(pod.path).lasting
            is_no_pod = pod.name.startswith((_DRAFT, CLAIMS, RUN)) or not pod.is_dir(follow_symlinks=False)
            if is_no_pod or any(entry.path not in lasting for entry in os.scandir(pod.path)):
                return True
    return False


def delete(path: Path) -> None:
    """Delete a file, or a folder with its content, if it exists. Raises BackendError."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    for _ in range(_ROUNDS):
        with contextlib.suppress(RecursionError):
            shutil.rmtree(path, onerror=_make_writable_and_retry)
        if not path.exists():
            return
        _flatten(path)
    raise BackendError(f"The folder {path} could not be deleted")


def _flatten(path: Path) -> None:
    """Move every folder below to the top: a pod can nest more of them than a recursion or the open files allow."""
    with contextlib.suppress(OSError):
        path.chmod(0o700)
        top = os.open(path, _FOLDER)
        try:
            waiting = _folders_in(top)
            while waiting:
                waiting += _lifted(top, waiting.pop())
        finally:
            os.close(top)


def _lifted(top: int, name: str) -> list[str]:
    """Move the folders in this folder of `top` beside it. Returns their new names."""
    found = []
    with contextlib.suppress(OSError):
        os.chmod(name, 0o700, dir_fd=top)
        place = os.open(name, _FOLDER, dir_fd=top)
        try:
            for inner in _folders_in(place):
                os.chmod(inner, 0o700, dir_fd=place)
                new = f".{uuid.uuid4().hex}"
                os.rename(inner, new, src_dir_fd=place, dst_dir_fd=top)
                found.append(new)
        finally:
            os.close(place)
    return found


def _folders_in(place: int) -> list[str]:
    with os.scandir(place) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _make_writable_and_retry(delete_it: Callable[[str], object], path: str, _error: object) -> None:
    """Retry with write permission, because pods may leave folders without it."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        if not os.path.islink(path):
            os.chmod(path, 0o700)
        delete_it(path)
