"""Twins: jobs that differ only in names, age and labels. What one of them needs is computed once.

A million one-pod jobs have a few shapes. Twins share their rows and counts until a session changes one of them.
"""

from collections import defaultdict
from collections.abc import Container, Hashable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from hekla.engine.constraints import NO_CONSTRAINTS
from hekla.engine.model import PodGroupSpec, PodSpec

_OF_GROUP = attrgetter("queue", "namespace", "owner", "priority", "min_available", "phase")
_OF_POD = attrgetter("status", "role", "priority", "never_preempts", "nominated_node", "tolerations")
_REST_OF_GROUP = attrgetter("min_resources", "min_task_member", "topology", "sub_groups")
_REST_OF_POD = attrgetter("request", "node_selector")


class TwinGroups:
    """Pod groups in order, and the positions of those that are twins. `alone`: uids of groups without twins."""

    def __init__(self, groups: Sequence[PodGroupSpec], alone: Container[str] = ()) -> None:
        self.groups = groups
        positions: dict[Hashable, list[int]] = defaultdict(list)
        last_like: dict[Hashable, tuple[tuple[Any, ...], list[int]]] = {}
        """By some facts: the others of the last one-pod group with them, and the positions of its twins."""
        for at, group in enumerate(groups):
            if group.uid in alone:
                positions[at].append(at)
                continue
            key, others = _OF_GROUP(group), _others_of_one_pod(group)
            if others is not None and key in last_like and last_like[key][0] == others:
                last_like[key][1].append(at)
                continue
            shape = shape_of(group)
            found = positions[at if shape is None else shape]
            found.append(at)
            if shape is not None and others is not None:
                last_like[key] = others, found
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


def _others_of_one_pod(group: PodGroupSpec) -> tuple[Any, ...] | None:
    """What a group of one pod has in common with twins beside `_OF_GROUP`; None for other groups.

    Most jobs are twins of the one before, and a comparison costs half as much as a shape.
    """
    if len(group.pods) != 1:
        return None
    (spec,) = group.pods
    return _REST_OF_GROUP(group), _OF_POD(spec), _REST_OF_POD(spec), id(spec.constraints), id(spec.nonzero_request)


def _pod_shape(spec: PodSpec) -> Hashable:
    """Flat and short for the many pods without constraints: there may be a million."""
    own = _OF_POD(spec), tuple(spec.request.items())
    if not spec.node_selector and spec.constraints is NO_CONSTRAINTS and spec.nonzero_request is None:
        return own
    return own, tuple(spec.node_selector.items()), id(spec.constraints), id(spec.nonzero_request)
