"""Twins: jobs that differ only in names, age and labels. What one of them needs is computed once.

A million one-pod jobs have a few shapes. Twins share their rows and counts until a session changes one of them.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from operator import attrgetter

from hekla.engine.constraints import NO_CONSTRAINTS
from hekla.engine.model import PodGroupSpec, PodSpec

_TESTS = 64
"""At most so many are kept."""
_OF_GROUP = attrgetter("queue", "namespace", "owner", "priority", "min_available", "phase")
_UID: Callable[[PodSpec], str] = attrgetter("uid")
_OF_POD = attrgetter("status", "role", "priority", "never_preempts", "nominated_node", "tolerations")


class TwinGroups:
    """Pod groups in order, and the positions of those that are twins. `alone`: uids of groups without twins.

    `uids`: those of the groups, `pod_uids`: those of all pods; collected here, where each object is read anyway.
    """

    def __init__(self, groups: Sequence[PodGroupSpec], alone: Container[str] = ()) -> None:
        self.groups, self.uids, self.pod_uids = groups, list[str](), list[str]()
        positions: dict[Hashable, list[int]] = defaultdict(list)
        is_twin: Callable[[PodGroupSpec], bool] = _has_no_twins
        """Whether a group is a twin of one pod of the last."""
        same = list[int]()
        """The positions of all these twins."""
        tests: dict[Hashable, Callable[[PodGroupSpec], bool]] = {}
        """`is_twin` by shape: jobs of a few shapes often alternate."""
        add_uid, add_pod_uid = self.uids.append, self.pod_uids.append
        for at, group in enumerate(groups):
            add_uid(group.uid)
            if is_twin(group) and group.uid not in alone:
                add_pod_uid(group.pods[0].uid)
                same.append(at)
                continue
            self.pod_uids += map(_UID, group.pods)
            shape = None if group.uid in alone else shape_of(group)
            same = positions[at if shape is None else shape]
            same.append(at)
            if shape is None or len(group.pods) > 1:
                is_twin = _has_no_twins
            else:
                is_twin = tests.get(shape) or twins_of_one_pod(group)
                if len(tests) < _TESTS:
                    tests[shape] = is_twin
        self.positions = [*positions.values()]

    def firsts(self) -> Iterator[PodGroupSpec]:
        """The first group of each shape."""
        return (self.groups[equals[0]] for equals in self.positions)


def _has_no_twins(_group: PodGroupSpec) -> bool:
    return False


def twins_of_one_pod(first: PodGroupSpec) -> Callable[[PodGroupSpec], bool]:
    """A test whether a group has one pod and surely the shape of this one, which has one pod too.

    Most jobs are twins of the one before, and this is cheaper than to compare shapes: nothing is built, and what is
    compared with is at hand.
    """
    queue, priority, owner, namespace, phase = first.queue, first.priority, first.owner, first.namespace, first.phase
    least, roles, minimum = first.min_available, first.min_task_member, first.min_resources
    spec, lowest = first.pods[0], None if minimum is None else minimum.amounts
    status, role, pod_priority, amounts = spec.status, spec.role, spec.priority, spec.request.amounts
    never_preempts, nominated, constraints = spec.never_preempts, spec.nominated_node, spec.constraints
    nonzero, tolerations, selector = spec.nonzero_request, spec.tolerations, spec.node_selector

    def is_twin(group: PodGroupSpec) -> bool:
        if len(group.pods) != 1:
            return False
        pod, own = group.pods[0], group.min_resources
        return (
            group.queue == queue
            and group.priority == priority
            and group.owner == owner
            and group.namespace == namespace
            and group.phase is phase
            and pod.status is status
            and (pod.request.amounts is amounts or pod.request.amounts == amounts)
            and (own is minimum or (own is not None and (own.amounts is lowest or own.amounts == lowest)))
            and group.min_available == least
            and group.min_task_member == roles
            and pod.role == role
            and pod.priority == pod_priority
            and pod.never_preempts is never_preempts
            and pod.nominated_node == nominated
            and pod.constraints is constraints
            and pod.nonzero_request is nonzero
            and (pod.tolerations is tolerations or pod.tolerations == tolerations)
            and (pod.node_selector is selector or pod.node_selector == selector)
            and group.topology is None
            and not group.sub_groups
        )

    return is_twin


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
