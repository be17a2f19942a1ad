"""Hierarchical dominant resource fairness: the shares of a tree of queues, with jobs as leaves (`volcano-spec` §5.1).

A queue's annotations give its path and the weights along it (`root/science/dev`, `1/2/4`). A leaf is saturated if it
has all that it requests of some resource, or requests one that is fully allocated; an inner node, if all its children
are. An inner node holds the sum of its children; unsaturated ones are scaled to the smallest of their shares, so that a
child ahead of its siblings does not count against them.
"""

from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from hekla.domain.queue_settings import HIERARCHY, HIERARCHY_WEIGHTS, ROOT
from hekla.engine.columns import Mask, Vector, share
from hekla.engine.job_info import JobInfo
from hekla.engine.model import QueueSpec


@dataclass
class HierarchicalNode:
    """A queue in the tree, or a job as its leaf (`request` is set)."""

    weight: float = 1.0
    request: Vector | None = None
    allocated: Vector = field(default_factory=lambda: np.zeros(0))
    share: float = 0.0
    is_saturated: bool = False
    children: dict[str, "HierarchicalNode"] = field(default_factory=dict)


class HierarchyTree:
    """The tree of all queues with jobs. `held`: allocated resources by job uid, updated by the caller."""

    def __init__(
        self, jobs: list[JobInfo], queues: dict[str, QueueSpec], held: dict[str, Vector], total: Vector
    ) -> None:
        self._total, self._allocated = total, held
        self.root = HierarchicalNode(allocated=np.zeros_like(total))
        self._leaves: dict[str, HierarchicalNode] = {}
        for job in jobs:
            self._add(job, queues[job.group.queue])
        self.update_shares()

    def _add(self, job: JobInfo, queue: QueueSpec) -> None:
        branch, weights = self.root, (queue.annotations.get(HIERARCHY_WEIGHTS) or "1").split("/")
        for name, weight in zip_longest(path_of(queue)[1:], map(_weight, weights[1:])):
            if name is None:
                break
            branch = branch.children.setdefault(
                name, HierarchicalNode(weight or 1.0, allocated=np.zeros_like(self._total))
            )
        request = sum((pod.request for pod in job.pods), np.zeros_like(self._total))
        leaf = branch.children[f"job {job.group.uid}"] = HierarchicalNode(request=request)
        self._leaves[job.group.uid] = leaf

    def update_shares(self) -> None:
        """Recompute all shares from what the jobs hold."""
        for uid, leaf in self._leaves.items():
            leaf.allocated = self._allocated[uid]
            leaf.share = share(leaf.allocated, self._total)
        allocated = sum((leaf.allocated for leaf in self._leaves.values()), np.zeros_like(self._total))
        self._update(self.root, allocated < self._total)

    def _update(self, branch: HierarchicalNode, left: Mask) -> None:
        if branch.request is not None:
            has_all = (branch.allocated != 0) & (branch.request != 0) & (branch.allocated >= branch.request)
            branch.is_saturated = bool((has_all | (~left & (branch.request != 0))).any())
            return
        children = list(branch.children.values())
        for child in children:
            self._update(child, left)
        least = min([1.0, *(child.share for child in children if child.share and not child.is_saturated)])
        branch.allocated = np.zeros_like(self._total)
        for child in children:
            if child.share:
                branch.allocated = branch.allocated + child.allocated * (
                    1.0 if child.is_saturated else least / child.share
                )
        branch.share = share(branch.allocated, self._total)
        branch.is_saturated = all(child.is_saturated for child in children)

    def compare(self, left: QueueSpec, right: QueueSpec) -> float:
        """Negative if the left queue comes first: the unsaturated one, then the smaller share by weight."""
        mine, other = self.root, self.root
        paths = list(zip(path_of(left), path_of(right), strict=False))
        for step, _ in enumerate(paths):
            if mine.is_saturated != other.is_saturated:
                return 1.0 if mine.is_saturated else -1.0
            if difference := mine.share / mine.weight - other.share / other.weight:
                return difference
            if step + 1 < len(paths):
                names = paths[step + 1]
                mine, other = (
                    mine.children.get(names[0], HierarchicalNode()),
                    other.children.get(names[1], HierarchicalNode()),
                )
        return 0.0


def path_of(queue: QueueSpec) -> list[str]:
    """The path from the root to the queue."""
    return (queue.annotations.get(HIERARCHY) or ROOT).split("/")


def _weight(text: str) -> float:
    try:
        return max(float(text), 1.0)
    except ValueError:
        return 1.0
