"""Gangs within a gang: pods with the same values of the labels that a policy names (`volcano-spec` §3.6).

A gang without policies is one sub-group. What no policy matches is a sub-group too; then its minimum is one pod.
"""

from collections.abc import Callable, Iterator
from functools import cached_property

from hekla.engine.columns import Vector
from hekla.engine.conditions import matches
from hekla.engine.gangs import ALLOCATED, Gang, Member
from hekla.engine.model import NetworkTopology, SubGroupPolicy, TaskStatus

_PLACED = ALLOCATED | {TaskStatus.SUCCEEDED}
_PROMISED = _PLACED | {TaskStatus.PIPELINED}
_VALID = _PROMISED | {TaskStatus.PENDING}
Key = tuple[int, tuple[str, ...]]


class SubGroup:
    """`index`: which policy; that of the default one is beyond them. `values`: those of the policy's labels."""

    def __init__(self, gang: Gang, index: int, values: tuple[str, ...]) -> None:
        self.gang, self.index, self.values = gang, index, values
        policies = gang.job.sub_groups
        self.policy: SubGroupPolicy | None = policies[index] if index < len(policies) else None
        self.members: list[Member] = []

    @property
    def is_whole(self) -> bool:
        """It is the gang itself: there are no policies."""
        return not self.gang.job.sub_groups

    @property
    def least(self) -> int:
        """How many of its pods must have a place together."""
        if self.is_whole:
            return self.gang.job.min_available
        return self.policy.size if self.policy else 1

    @property
    def topology(self) -> NetworkTopology | None:
        """How close together its own pods must be."""
        if self.is_whole:
            return self.gang.job.topology
        return self.policy.topology if self.policy else None

    @cached_property
    def priority(self) -> int:
        return max((member.task.priority for member in self.members), default=0)

    @cached_property
    def request(self) -> Vector:
        """What all its pods ask for together."""
        total: Vector = sum((member.request for member in self.members[1:]), self.members[0].request.copy())
        return total

    @property
    def is_ready(self) -> bool:
        return self._count(_PLACED) >= self.least

    @property
    def is_pipelined(self) -> bool:
        return self._count(_PROMISED) >= self.least

    @property
    def is_valid(self) -> bool:
        return self._count(_VALID) >= self.least

    def pending(self) -> list[Member]:
        """Tasks that wait for a place and ask for something."""
        return [m for m in self.members if m.status is TaskStatus.PENDING and not m.best_effort]

    def _count(self, statuses: frozenset[TaskStatus]) -> int:
        return sum(m.status in statuses or (m.best_effort and m.status is TaskStatus.PENDING) for m in self.members)


class SubGroups:
    """All of a gang."""

    def __init__(self, gang: Gang) -> None:
        self.gang = gang
        self._found: dict[Key, SubGroup] = {}
        self._of: dict[str, SubGroup] = {}
        for member in gang.members:
            key = _key(gang, member)
            group = self._found.setdefault(key, SubGroup(gang, *key))
            group.members.append(member)
            self._of[member.task.uid] = group

    def __iter__(self) -> Iterator[SubGroup]:
        return iter(self._found[key] for key in sorted(self._found))

    def of(self, member: Member) -> SubGroup:
        """The sub-group of a task."""
        return self._of[member.task.uid]

    def has_enough(self, is_good: Callable[[SubGroup], bool]) -> bool:
        """Whether of each policy as many are good as it wants at least."""
        return all(not self.missing(index, is_good) for index in range(len(self.gang.job.sub_groups)))

    def missing(self, index: int, is_good: Callable[[SubGroup], bool]) -> int:
        """How many more of a policy must be good."""
        wanted = self.gang.job.sub_groups[index].at_least
        return max(0, wanted - sum(group.index == index and is_good(group) for group in self._found.values()))


def subgroups(gang: Gang) -> SubGroups:
    """The sub-groups of a gang, formed once."""
    if gang.formed is None:
        gang.formed = SubGroups(gang)
    found: SubGroups = gang.formed
    return found


def _key(gang: Gang, member: Member) -> Key:
    policies, labels = gang.job.sub_groups, member.task.labels
    for index, policy in enumerate(policies):
        values = tuple(labels.get(key, "") for key in policy.keys)
        if values and all(values) and policy.selector is not None and matches(policy.selector, labels):
            return index, values
    return len(policies), ()
