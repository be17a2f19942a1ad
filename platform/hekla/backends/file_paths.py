"""Paths of files below the working folder of a pod, as people may name them."""

import os

from hekla.backends.files import MOST_DEPTH, NoSuchFileError
from hekla.backends.uploads import DRAFT_PREFIX
from hekla.domain.frameworks.ssh import FOLDER as SSH_FOLDER

SECRET = frozenset({SSH_FOLDER})
"""Parts of the working folder that hold secrets of the job."""


def parts_of(path: str) -> list[str]:
    """The parts of a path. Raises NoSuchFileError if it is impossible, or leads to secrets or unfinished uploads."""
    parts = path.split("/") if path else []
    impossible = any(part in ("", ".", "..") or "\0" in part or part.startswith(DRAFT_PREFIX) for part in parts)
    if impossible or not _is_encodable(path) or len(parts) > MOST_DEPTH or (parts and parts[0] in SECRET):
        raise NoSuchFileError(path)
    return parts


def _is_encodable(path: str) -> bool:
    """Whether a file can have this name: half a character of UTF-16, as in JSON, is in none."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def is_visible(name: str, parts: list[str]) -> bool:
    """Whether an entry of the folder with these parts exists for people."""
    return not name.startswith(DRAFT_PREFIX) and (bool(parts) or name not in SECRET)
