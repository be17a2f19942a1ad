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
        for at, group in enumerate(groups):
            shape = None if group.uid in alone else shape_of(group)
            positions[at if shape is None else shape].append(at)
        self.positions = [*positions.values()]

    def firsts(self) -> Iterator[PodGroupSpec]:
        """The first group of each shape."""
        return (self.groups[equals[0]] for equals in self.positions)


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
