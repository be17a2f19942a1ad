"""The names of pods on disk and in the environment of their processes, there and back."""

from pathlib import Path

from hekla.backends.base import PodKey


def entry_of(key: PodKey) -> str:
    """A pod's name among the active ones; its processes carry it as their mark."""
    return f"{key.job}:{key.task}-{key.index}-{key.attempt}"


def key_of(entry: str) -> PodKey:
    """The pod of that name. Raises ValueError where there can be none."""
    job, _, rest = entry.partition(":")
    task, index, attempt = rest.rsplit("-", 2)
    return PodKey(job, task, int(index), int(attempt))


def folders(place: Path) -> list[Path]:
    """The folders of jobs, or of one job's pods; drafts are none."""
    try:
        return [path for path in place.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []
