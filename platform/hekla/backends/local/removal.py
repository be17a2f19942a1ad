"""What is deleted with a job, and what stays: of each pod its log, and the status that says that it has ended.

Everything here may be cut off and done again.
"""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from hekla.backends.base import BackendError
from hekla.backends.local import limits
from hekla.backends.local.podfolder import CLAIMS, PodFolder

_ROUNDS = 3
_DRAFT = ".draft-"


def strip(folder: PodFolder) -> None:
    """Leave nothing of a pod that has ended but its log. Raises BackendError."""
    order = folder.order()
    if order and order["cgroup"]:
        limits.end(order["cgroup"])
    for entry in os.scandir(folder.path):
        if entry.path not in folder.lasting:
            delete(Path(entry.path))


def drop_what_is_no_pods(job: Path) -> None:
    """Delete the job's volumes, and folders that were being written when their writer died. Raises BackendError."""
    for path in (job / CLAIMS, *job.glob(f"{_DRAFT}*")):
        delete(path)


def holds_more_than_logs(job: Path) -> bool:
    """Whether something of a job is there that goes with it."""
    with contextlib.suppress(FileNotFoundError):
        for pod in os.scandir(job):
            lasting = PodFolder(pod.path).lasting
            is_no_pod = pod.name.startswith((_DRAFT, CLAIMS))
            if is_no_pod or any(entry.path not in lasting for entry in os.scandir(pod.path)):
                return True
    return False


def delete(path: Path) -> None:
    """Delete a file or a folder with all that is in it, if it is there. Raises BackendError."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    for _ in range(_ROUNDS):
        shutil.rmtree(path, onerror=_make_writable_and_retry)
        if not path.exists():
            return
    raise BackendError(f"The folder {path} could not be deleted")


def _make_writable_and_retry(delete_it: Callable[[str], object], path: str, _error: object) -> None:
    """Pods may leave folders without the right to write in them."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        os.chmod(path, 0o700)
        delete_it(path)
