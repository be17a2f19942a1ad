"""Twins: jobs that differ only in names, age and labels. What one of them needs is computed once.

A million one-pod jobs have a few shapes. Twins share their rows and counts until a session changes one of them.
"""

from collections import defaultdict
from collections.abc import Container, Hashable, Iterator, Sequence
from operator import attrgetter

from hekla.engine.constraints import NO_CONSTRAINTS
from hekla.engine.model import PodGroupSpec, PodSpec

_OF_GROUP = attrgetter("queue", "namespace", "owner", "priority", "min_available", "phase")
_OF_POD = attrgetter("status", "role", "priority", "never_preempts", "nominated_node", "tolerations")


class TwinGroups:
    """Pod groups in order, and the positions of those that are twins. `alone`: uids of groups without twins."""

    def __init__(self, groups: Sequence[PodGroupSpec], alone: Container[str] = ()) -> None:
        self.groups = groups
        positions: dict[Hashable, list[int]] = defaultdict(list)
        last, same = None, list[int]()
        """The first of the twins of one pod that came last, and the positions of them all."""
        for at, group in enumerate(groups):
            if last is not None and are_twins_of_one_pod(group, last) and group.uid not in alone:
                same.append(at)
                continue
            shape = None if group.uid in alone else shape_of(group)
            same = positions[at if shape is None else shape]
            same.append(at)
            last = None if shape is None or len(group.pods) > 1 else group
        self.positions = [*positions.values()]

    def firsts(self) -> Iterator[PodGroupSpec]:
        """The first group of each shape."""
        return (self.groups[equals[0]] for equals in self.positions)


def are_twins_of_one_pod(group: PodGroupSpec, other: PodGroupSpec) -> bool:
    """Whether a group has one pod and surely the shape of another, which has one pod too.

    Most jobs are twins of the one before, and this is cheaper than to compare shapes: nothing is built.
    """
    if len(group.pods) != 1:
        return False
    spec, first, least, minimum = group.pods[0], other.pods[0], group.min_resources, other.min_resources
    return (
        group.queue == other.queue
        and group.priority == other.priority
        and group.owner == other.owner
        and group.namespace == other.namespace
        and group.phase is other.phase
        and spec.status is first.status
        and (spec.request is first.request or spec.request.amounts == first.request.amounts)
        and (least is minimum or (not (least is None or minimum is None) and least.amounts == minimum.amounts))
        and group.min_available == other.min_available
        and group.min_task_member == other.min_task_member
        and spec.role == first.role
        and spec.priority == first.priority
        and spec.never_preempts is first.never_preempts
        and spec.nominated_node == first.nominated_node
        and spec.constraints is first.constraints
        and spec.nonzero_request is first.nonzero_request
        and (spec.tolerations is first.tolerations or spec.tolerations == first.tolerations)
        and (spec.node_selector is first.node_selector or spec.node_selector == first.node_selector)
        and group.topology is None
        and not group.sub_groups
    )


def shape_of(group: PodGroupSpec) -> Hashable | None:
    """The shape that twins share; None if the pods differ or are placed by topology.

    Constraints are compared by identity, so a shape is valid as long as its job.
    """
    pods, least = group.pods, group.min_resources
    if not pods or group.topology is not None or group.sub_groups:
        return None
    first = _pod_shape(pods[0])
    if len(pods) > 1 and any(_pod_shape(spec) != first for spec in pods):
        return None
    minimums = tuple(group.min_task_member.items()), None if least is None else tuple(least.items())
    return _OF_GROUP(group), first, minimums, len(pods)


def _pod_shape(spec: PodSpec) -> Hashable:
    """Flat and short for the many pods without constraints: there may be a million."""
    own = _OF_POD(spec), tuple(spec.request.items())
    if not spec.node_selector and spec.constraints is NO_CONSTRAINTS and spec.nonzero_request is None:
        return own
    return own, tuple(spec.node_selector.items()), id(spec.constraints), id(spec.nonzero_request)
