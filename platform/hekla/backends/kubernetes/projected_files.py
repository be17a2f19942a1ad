"""Files of a job in folders where programs expect them, for example `/etc/volcano` or root's `.ssh`.

The image decides which user the pod's process runs as, and we cannot know it. So secrets are protected outside the pod,
and every user inside it may read them. Only files in root's home are readable by root alone, because ssh refuses a
private key that others may read.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from hekla.backends.base import PodOrder, StartRefused
from hekla.backends.kubernetes.api import Json

FOR_ALL, FOR_ROOT = 0o444, 0o600
_HOME_OF_ROOT = PurePosixPath("/root")
_FOLDER = "folder"
"""A folder inside each volume: volumes themselves are writable by all, which sshd refuses for the folder of keys."""


def file_key(name: str) -> str:
    """The key of a file in its ConfigMap or Secret: a path is not a valid key, and may be too long."""
    return hashlib.sha256(name.encode()).hexdigest()


def volumes(order: PodOrder) -> list[Json]:
    """A volume for each folder."""
    return [{"name": name, **_source(order, path, folder)} for name, path, folder in _folders(order)]


def mounts(order: PodOrder) -> list[Json]:
    """The mounts in the container."""
    return [
        {"name": name, "mountPath": path, "subPath": _FOLDER, "readOnly": True} for name, path, _ in _folders(order)
    ]


def check(order: PodOrder) -> None:
    """Raise StartRefused for a folder path that cannot be mounted."""
    for path in order.mounts:
        folder = PurePosixPath(path)
        if not folder.is_absolute() or ".." in folder.parts or ":" in path or folder == PurePosixPath("/"):
            raise StartRefused(f"“{path[:80]}” is no folder in which a pod may find files.")


def _folders(order: PodOrder) -> Iterator[tuple[str, str, str]]:
    """For each folder with files: the name of its volume, its path in the pod, and its path in the order."""
    for number, (path, folder) in enumerate(sorted(order.mounts.items())):
        if any(PurePosixPath(name).is_relative_to(folder) for name in (*order.files, *order.secrets)):
            yield f"folder-{number}", path, folder


def _source(order: PodOrder, path: str, folder: str) -> Json:
    kinds = {"configMap": _items(order.files, folder), "secret": _items(order.secrets, folder)}
    sources = [{kind: {"name": order.key.name, "items": items}} for kind, items in kinds.items() if items]
    is_for_root = kinds["secret"] and PurePosixPath(path).is_relative_to(_HOME_OF_ROOT)
    return {"projected": {"sources": sources, "defaultMode": FOR_ROOT if is_for_root else FOR_ALL}}


def _items(content: Mapping[str, str], folder: str) -> list[Json]:
    below = {name: PurePosixPath(name) for name in content if PurePosixPath(name).is_relative_to(folder)}
    return [{"key": file_key(name), "path": f"{_FOLDER}/{path.relative_to(folder)}"} for name, path in below.items()]
