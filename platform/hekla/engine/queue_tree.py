"""The hierarchy of queues: each below its parent, all below `root` (`volcano-spec` §5.3)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hekla.engine.model import QueueSpec

ROOT = "root"
CYCLE = "queue_tree_cycle"
NO_PARENT = "queue_parent_missing"


@dataclass(frozen=True, slots=True)
class QueueTree:
    """The tree of queues.

    `paths`: from a queue up to the root, both included. `problems`: of the path of a queue, by its name.

    A queue with a problem becomes a child of the root, so that what it holds is still counted.
    """

    paths: Mapping[str, tuple[str, ...]]
    problems: Mapping[str, str]

    @property
    def inner(self) -> frozenset[str]:
        """Queues with children."""
        return frozenset(ancestor for path in self.paths.values() for ancestor in path[1:])


def build(queues: Mapping[str, QueueSpec]) -> QueueTree:
    """The tree of these queues, `root` among them."""
    found = {name: _path(queues, name) for name in queues}
    paths = {name: path for name, (path, _) in found.items()}
    return QueueTree(paths, {name: problem for name, (_, problem) in found.items() if problem})


def _path(queues: Mapping[str, QueueSpec], name: str) -> tuple[tuple[str, ...], str]:
    path = [name]
    for ancestor in _ancestors(queues, name):
        if ancestor in path or ancestor not in queues:
            return (name, ROOT), CYCLE if ancestor in path else NO_PARENT
        path.append(ancestor)
    return tuple(path), ""


def _ancestors(queues: Mapping[str, QueueSpec], name: str) -> Iterator[str]:
    while name != ROOT:
        name = queues[name].parent or ROOT
        yield name
