"""Attributes of all queues at the start of a session, and their updates."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from hekla.domain.resources import Resources
from hekla.engine import queue_attributes, queue_tree
from hekla.engine.columns import EPSILON, Mask, Vector, share
from hekla.engine.job_info import PodInfo
from hekla.engine.model import QueueSpec
from hekla.engine.plugins.capacity.devices import Demand
from hekla.engine.queue_tree import ROOT, QueueTree
from hekla.engine.session import Session, limit_vector

HAS_CHILDREN = "queue_has_children"
NOT_READY = "queue_tree_not_ready"


@dataclass(eq=False)
class CapacityAttributes(queue_attributes.QueueAttributes):
    """A queue's attributes and its place in the tree.

    `deserved_mask`: the dimensions in which it deserves something; `deserved_without_pods`: the same without pods.
    `path`: from itself up to the root; without a hierarchy only itself. `problem`: why it accepts nothing.
    """

    deserved_without_pods: Mask
    deserved_mask: Mask
    path: "tuple[CapacityAttributes, ...]" = ()
    is_inner: bool = False
    problem: str = ""
    _share: float | None = None

    @property
    def ancestors(self) -> tuple[str, ...]:
        return tuple(attributes.queue.name for attributes in self.path[1:])

    @property
    def deserves_any(self) -> bool:
        """Whether it deserves anything at all."""
        return bool(self.deserved_without_pods.any())

    @property
    def share(self) -> float:
        """The dominant share: the largest ratio of allocated to deserved; 1 for a queue that deserves nothing."""
        if self._share is None:
            self._share = self.share_with(np.zeros_like(self.allocated))
        return self._share

    def share_with(self, more: Vector) -> float:
        """The share if it held so much more (or less, if negative)."""
        counted = self.deserved_mask
        return share((self.allocated + more)[counted], self.deserved[counted]) if self.deserves_any else 1.0

    def allocate(self, amount: Vector, *, weigh: bool) -> None:
        """Allocate more; without `weigh` the share stays as it was."""
        self._share = None if weigh else self.share
        self.allocated += amount


AttributesByQueue = dict[str, CapacityAttributes]


def update_allocated(by_queue: AttributesByQueue, pod: PodInfo, amount: Vector, *, weigh_all: bool) -> None:
    """Update a queue and its ancestors after a pod was placed, or removed (negative amount).

    Volcano recomputes only the share of the queue itself: for the rest of the session its ancestors are compared by
    their shares at the start, and one branch may take all turns. `weigh_all` False follows Volcano.
    """
    path = by_queue[pod.job.group.queue].path
    for attributes in path:
        attributes.allocate(amount, weigh=weigh_all or attributes is path[0])


def of_session(session: Session, demand: Demand, *, is_tree: bool) -> AttributesByQueue:
    """The attributes of each queue."""
    by_queue = _of_tree(session) if is_tree else _of_flat(session)
    for name, sums in session.queue_totals.items():
        if name in session.queues:
            queue_attributes.add_totals(by_queue[name].path, sums)
    for job in session.jobs.values() if demand.counts_claims else ():
        for attributes in by_queue[job.group.queue].path:
            attributes.allocated += demand.claimed(job)
    return by_queue


def _of_flat(session: Session) -> AttributesByQueue:
    promised, by_queue, whole = queue_attributes.total_guarantee(session), {}, queue_attributes.cluster_limits(session)
    for queue in session.queues.values():
        real = queue_attributes.real_capability(session, queue, whole, promised)
        attributes = _attributes(session, queue, real, np.minimum(_row(session, queue.deserved), real))
        attributes.path = (attributes,)
        by_queue[queue.name] = attributes
    return by_queue


def _of_tree(session: Session) -> AttributesByQueue:
    queues = _with_root(session)
    tree = queue_tree.build(queues)
    promised, owed = _child_totals(session, queues, tree)
    by_queue: AttributesByQueue = {}
    for name in sorted(tree.paths, key=lambda name: len(tree.paths[name])):
        queue, above = queues[name], [by_queue[up] for up in tree.paths[name][1:] if up in by_queue]
        if above:
            real = queue_attributes.real_capability(
                session, queue, above[0].real_capability, promised[above[0].queue.name]
            )
            attributes = _attributes(session, queue, real, _row(session, queue.deserved))
        else:
            attributes = _attributes(session, queue, limit_vector(session, queue.capability), owed[name])
            attributes.guarantee = promised[name]
        attributes.path = (attributes, *above)
        by_queue[name] = attributes
    _mark_problems(session, by_queue, tree)
    return by_queue


def _with_root(session: Session) -> dict[str, QueueSpec]:
    """The queues with a root.

    Volcano creates the root when it starts, and has no tree without it; here it is added if it is missing.
    """
    if ROOT in session.queues or session.policy.follows_volcano:
        return session.queues
    return session.queues | {ROOT: QueueSpec(ROOT, reclaimable=False)}


def _child_totals(
    session: Session, queues: dict[str, QueueSpec], tree: QueueTree
) -> tuple[dict[str, Vector], dict[str, Vector]]:
    """By queue: the guarantees of its children, and what they deserve, each at least its guarantee."""
    promised: dict[str, Vector] = defaultdict(lambda: np.zeros_like(session.total_resources))
    owed: dict[str, Vector] = defaultdict(lambda: np.zeros_like(session.total_resources))
    for name, path in tree.paths.items():
        for above in path[1:2]:
            guarantee = _row(session, queues[name].guarantee)
            promised[above] += guarantee
            owed[above] += np.maximum(_row(session, queues[name].deserved), guarantee)
    return promised, owed


def _row(session: Session, amounts: Resources | None) -> Vector:
    return session.dimensions.vector(amounts or {})


def _attributes(session: Session, queue: QueueSpec, real: Vector, deserved: Vector) -> CapacityAttributes:
    guarantee = _row(session, queue.guarantee)
    allocated, request, inqueue, elastic = np.zeros((4, len(session.total_resources)))
    owns = np.maximum(deserved, guarantee)
    has: Mask = owns >= EPSILON
    owned: Mask = has & session.dimensions.without_pods
    return CapacityAttributes(
        queue, guarantee, real, owns, allocated, request, inqueue, elastic, owned, deserved_mask=has
    )


def _mark_problems(session: Session, by_queue: AttributesByQueue, tree: QueueTree) -> None:
    """Mark the queues that accept nothing.

    In Volcano the whole tree is disabled for this cycle if one queue has no path to the root or one job is in an inner
    queue; here only those queues are.
    """
    inner, used = tree.inner, session.queue_totals.keys()
    for name, attributes in by_queue.items():
        attributes.is_inner = name in inner
        attributes.problem = tree.problems.get(name, "") or (
            HAS_CHILDREN if attributes.is_inner and name in used else ""
        )
    if session.policy.follows_volcano and any(attributes.problem for attributes in by_queue.values()):
        for attributes in by_queue.values():
            attributes.problem = attributes.problem or NOT_READY
