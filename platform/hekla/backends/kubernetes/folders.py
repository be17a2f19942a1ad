"""Folders of files at places where programs look for them, such as `/etc/volcano` or the `.ssh` of root.

A pod's process may be root or, as its image says, somebody else, and nobody can ask the image. What is secret is so
outside of the pod; inside of it everybody may read it. Only in the home of root files are for root alone: ssh takes no
private key of one's own that others may read, but it takes one of root's.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from hekla.backends.base import PodOrder, StartRefused
from hekla.backends.kubernetes.api import Json

FOR_ALL, FOR_ROOT = 0o444, 0o600
_HOME_OF_ROOT = PurePosixPath("/root")
_WITHIN = "folder"
"""Volumes are open to all for writing, which sshd does not like of the folder of keys; folders within them are not."""


def entry(name: str) -> str:
    """A key for a file in the object that brings it: paths are none, and may be longer than keys."""
    return hashlib.sha256(name.encode()).hexdigest()


def volumes(order: PodOrder) -> list[Json]:
    """One for each folder."""
    return [{"name": name, **_source(order, path, folder)} for name, path, folder in _each(order)]


def mounts(order: PodOrder) -> list[Json]:
    """Where the container has them."""
    return [{"name": name, "mountPath": path, "subPath": _WITHIN, "readOnly": True} for name, path, _ in _each(order)]


def check(order: PodOrder) -> None:
    """Raise StartRefused for a folder that is nowhere to be put."""
    for path in order.mounts:
        place = PurePosixPath(path)
        if not place.is_absolute() or ".." in place.parts or ":" in path or place == PurePosixPath("/"):
            raise StartRefused(f"“{path[:80]}” is no folder in which a pod may find files.")


def _each(order: PodOrder) -> Iterator[tuple[str, str, str]]:
    """A name for the volume, the path in the pod, and the folder of the order, where there is anything in it."""
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
    return [{"key": entry(name), "path": f"{_WITHIN}/{path.relative_to(folder)}"} for name, path in below.items()]
