"""Queues as a tree: each below the one that it names as its parent, all below `root` (`volcano-spec` §5.3)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hekla.engine.model import Queue

ROOT = "root"
CYCLE = "queue_tree_cycle"
NO_PARENT = "queue_parent_missing"


@dataclass(frozen=True, slots=True)
class QueueTree:
    """`lines`: from a queue up to the root, both included. `broken`: what is wrong above a queue, by its name.

    A queue whose way up is broken hangs from the root, so that what it holds is not lost from sight.
    """

    lines: Mapping[str, tuple[str, ...]]
    broken: Mapping[str, str]

    @property
    def inner(self) -> frozenset[str]:
        """Queues with queues below them."""
        return frozenset(above for line in self.lines.values() for above in line[1:])


def grow(queues: Mapping[str, Queue]) -> QueueTree:
    """The tree of these queues, `root` among them."""
    found = {name: _line(queues, name) for name in queues}
    lines = {name: line for name, (line, _) in found.items()}
    return QueueTree(lines, {name: problem for name, (_, problem) in found.items() if problem})


def _line(queues: Mapping[str, Queue], name: str) -> tuple[tuple[str, ...], str]:
    line = [name]
    for above in _above(queues, name):
        if above in line or above not in queues:
            return (name, ROOT), CYCLE if above in line else NO_PARENT
        line.append(above)
    return tuple(line), ""


def _above(queues: Mapping[str, Queue], name: str) -> Iterator[str]:
    while name != ROOT:
        name = queues[name].parent or ROOT
        yield name
