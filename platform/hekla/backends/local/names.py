"""Names of pods on disk and in the environment of their processes, and the keys that they stand for."""

from pathlib import Path

from hekla.backends.base import PodKey


def entry_of(key: PodKey) -> str:
    """A pod's name among the active ones, also the mark in the environment of its processes."""
    return f"{key.job}:{key.task}-{key.index}-{key.attempt}"


def key_of(entry: str) -> PodKey:
    """The pod of that name. Raises ValueError if it is no such name."""
    job, _, rest = entry.partition(":")
    task, index, attempt = rest.rsplit("-", 2)
    return PodKey(job, task, int(index), int(attempt))


def list_folders(parent: Path) -> list[Path]:
    """The folders of jobs, or of one job's pods, without drafts."""
    try:
        return [path for path in parent.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []
