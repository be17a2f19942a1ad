"""Hierarchical dominant resource fairness: the shares of a tree of queues, with jobs as leaves (`volcano-spec` §5.1).

A queue says its path and the weights along it by annotation (`root/science/dev`, `1/2/4`). A leaf is saturated when it
has all it asks for of some resource, or asks for one that the cluster has given out; an inner node when all below it
are. An inner node holds the sum of its children, of which those that are not saturated are scaled to the smallest of
their shares, so that a child that runs ahead does not count against its siblings.
"""

from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from hekla.engine.columns import Mask, Vector, share
from hekla.engine.gangs import Gang
from hekla.engine.model import Queue

_PATH, _WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
_ROOT = "root"


@dataclass
class Branch:
    """A queue on the tree, or a job at its end (`request` is set)."""

    weight: float = 1.0
    request: Vector | None = None
    allocated: Vector = field(default_factory=lambda: np.zeros(0))
    share: float = 0.0
    is_saturated: bool = False
    children: dict[str, "Branch"] = field(default_factory=dict)


class Tree:
    """All queues that have jobs. `held`: job uid to what it holds, kept by the caller."""

    def __init__(self, gangs: list[Gang], queues: dict[str, Queue], held: dict[str, Vector], total: Vector) -> None:
        self._total, self._held = total, held
        self.root = Branch(allocated=np.zeros_like(total))
        self._leaves: dict[str, Branch] = {}
        for gang in gangs:
            self._add(gang, queues[gang.job.queue])
        self.renew()

    def _add(self, gang: Gang, queue: Queue) -> None:
        branch = self.root
        for name, weight in zip_longest(path_of(queue)[1:], _weights_of(queue)[1:]):
            if name is None:
                break
            branch = branch.children.setdefault(name, Branch(weight or 1.0, allocated=np.zeros_like(self._total)))
        request = sum((member.request for member in gang.members), np.zeros_like(self._total))
        leaf = branch.children[f"job {gang.job.uid}"] = Branch(request=request)
        self._leaves[gang.job.uid] = leaf

    def renew(self) -> None:
        """Count all shares again from what the jobs hold."""
        for uid, leaf in self._leaves.items():
            leaf.allocated = self._held[uid]
            leaf.share = share(leaf.allocated, self._total)
        given = sum((leaf.allocated for leaf in self._leaves.values()), np.zeros_like(self._total))
        self._settle(self.root, given < self._total)

    def _settle(self, branch: Branch, left: Mask) -> None:
        if branch.request is not None:
            has_all = (branch.allocated != 0) & (branch.request != 0) & (branch.allocated >= branch.request)
            branch.is_saturated = bool((has_all | (~left & (branch.request != 0))).any())
            return
        children = list(branch.children.values())
        for child in children:
            self._settle(child, left)
        least = min([1.0, *(child.share for child in children if child.share and not child.is_saturated)])
        branch.allocated = np.zeros_like(self._total)
        for child in children:
            if child.share:
                branch.allocated = branch.allocated + child.allocated * (
                    1.0 if child.is_saturated else least / child.share
                )
        branch.share = share(branch.allocated, self._total)
        branch.is_saturated = all(child.is_saturated for child in children)

    def compare(self, left: Queue, right: Queue) -> float:
        """Below zero when the left queue goes first: who is not saturated, then who holds less for its weight."""
        mine, other = self.root, self.root
        paths = list(zip(path_of(left), path_of(right), strict=False))
        for step, _ in enumerate(paths):
            if mine.is_saturated != other.is_saturated:
                return 1.0 if mine.is_saturated else -1.0
            if difference := mine.share / mine.weight - other.share / other.weight:
                return difference
            if step + 1 < len(paths):
                names = paths[step + 1]
                mine, other = mine.children.get(names[0], Branch()), other.children.get(names[1], Branch())
        return 0.0


def path_of(queue: Queue) -> list[str]:
    """From the root to the queue."""
    return (queue.annotations.get(_PATH) or _ROOT).split("/")


def _weights_of(queue: Queue) -> list[float]:
    return [_weight(text) for text in (queue.annotations.get(_WEIGHTS) or "1").split("/")]


def _weight(text: str) -> float:
    try:
        return max(float(text), 1.0)
    except ValueError:
        return 1.0
