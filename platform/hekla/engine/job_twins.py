"""Twins: jobs that differ only in names, age and labels. What one of them needs is computed once.

A million one-pod jobs have a few shapes. Twins share their rows and counts until a session changes one of them.
"""

from collections import defaultdict
from collections.abc import Container, Hashable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from hekla.engine.constraints import NO_CONSTRAINTS
from hekla.engine.model import PodGroupSpec, PodSpec

_GROUP_FIELDS = "queue", "namespace", "owner", "priority", "min_available", "phase"
_POD_FIELDS = "status", "role", "priority", "never_preempts", "nominated_node", "tolerations"
_OF_GROUP, _OF_POD = attrgetter(*_GROUP_FIELDS), attrgetter(*_POD_FIELDS)
_ALL_OF_GROUP = attrgetter(*_GROUP_FIELDS, "min_resources", "min_task_member", "topology", "sub_groups")
_ALL_OF_POD = attrgetter(*_POD_FIELDS, "request", "node_selector", "constraints", "nonzero_request")


class TwinGroups:
    """Pod groups in order, and the positions of those that are twins. `alone`: uids of groups without twins."""

    def __init__(self, groups: Sequence[PodGroupSpec], alone: Container[str] = ()) -> None:
        self.groups = groups
        positions: dict[Hashable, list[int]] = defaultdict(list)
        last, same = None, list[int]()
        """What the last group of one pod has in common with twins, and the positions of those."""
        for at, group in enumerate(groups):
            facts = _facts_of_one_pod(group)
            if facts is not None and facts == last and group.uid not in alone:
                same.append(at)
                continue
            shape = None if group.uid in alone else shape_of(group)
            same = positions[at if shape is None else shape]
            same.append(at)
            last = None if shape is None else facts
        self.positions = [*positions.values()]

    def firsts(self) -> Iterator[PodGroupSpec]:
        """The first group of each shape."""
        return (self.groups[equals[0]] for equals in self.positions)


def _facts_of_one_pod(group: PodGroupSpec) -> tuple[Any, Any] | None:
    """What a group of one pod has in common with twins; None for other groups.

    Most jobs are twins of the one before, and comparing these costs less than half of comparing shapes.
    """
    return (_ALL_OF_GROUP(group), _ALL_OF_POD(group.pods[0])) if len(group.pods) == 1 else None


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
