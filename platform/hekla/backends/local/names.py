"""Names of pods on disk and in the environment of their processes, and their keys."""

import os
from pathlib import Path

from hekla.backends.base import PodKey


def entry_of(key: PodKey) -> str:
    """The name of a pod's file in `active`, and the mark in the environment of its processes."""
    return f"{key.job}:{key.task}-{key.index}-{key.attempt}"


def key_of(entry: str) -> PodKey:
    """The key of the pod with this name. Raises ValueError if it is not such a name."""
    job, _, rest = entry.partition(":")
    task, index, attempt = rest.rsplit("-", 2)
    return PodKey(job, task, int(index), int(attempt))


def list_folders(parent: Path) -> list[Path]:
    """The folders of jobs, or of one job's pods, without drafts. A link is not one of them."""
    try:
        entries = list(os.scandir(parent))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [Path(entry) for entry in entries if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)]
