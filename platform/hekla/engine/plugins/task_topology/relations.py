"""Affinity and anti-affinity between roles of a job, from its annotations (`volcano-spec` §5.6)."""

from collections.abc import Iterable, Mapping
from itertools import permutations

from hekla.engine.model import PodGroupSpec

_AFFINITY = "volcano.sh/task-topology-affinity"
_ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
_ORDER = "volcano.sh/task-topology-task-order"
_SELF_ANTI, _INTER, _SELF, _INTER_ANTI = 4, 3, 2, 1
"""The strength of a relation: roles with stronger relations are placed first."""


class Relations:
    """Groups of roles as `a,b;c`: all pairs within a group; a single role relates to itself."""

    def __init__(self, job: PodGroupSpec) -> None:
        self._together = _pairs(_groups(job, _AFFINITY))
        self._apart = _pairs(_groups(job, _ANTI_AFFINITY))
        order = [role for group in _groups(job, _ORDER) for role in group]
        self._order = {role: len(order) - at for at, role in enumerate(order)}
        self._strength: dict[str, int] = {}
        for pairs, alone, with_others in ((self._together, _SELF, _INTER), (self._apart, _SELF_ANTI, _INTER_ANTI)):
            for left, right in pairs:
                strength = alone if left == right else with_others
                self._strength[left] = max(self._strength.get(left, 0), strength)

    @property
    def concern_any(self) -> bool:
        """Whether any role has a relation."""
        return bool(self._strength)

    def concern(self, role: str) -> bool:
        """Whether the role has a relation."""
        return role in self._strength

    def rank(self, role: str) -> tuple[int, int]:
        """The sort key, highest first: the order that the job defines, then the strength of the role's relations."""
        return self._order.get(role, 0), self._strength.get(role, 0)

    def affinity(self, role: str, others: Mapping[str, int]) -> int:
        """The affinity of a role to these pods: one for each with affinity, minus one for each with anti-affinity."""
        return sum(count * ((role, other) in self._together) for other, count in others.items()) + self.dislike(
            role, others
        )

    def dislike(self, role: str, others: Mapping[str, int]) -> int:
        """Minus one for each of these pods with anti-affinity to the role."""
        return -sum(count * ((role, other) in self._apart) for other, count in others.items())

    def disliked(self, role: str) -> list[str]:
        """The roles with anti-affinity to the role."""
        return [right for left, right in self._apart if left == role]


def _groups(job: PodGroupSpec, name: str) -> list[list[str]]:
    """The groups in an annotation; none if a group repeats a role or the job does not have one."""
    text = job.annotations.get(name, "").strip()
    groups = [[role.strip() for role in group.split(",")] for group in text.split(";")] if text else []
    roles = {spec.role for spec in job.pods}
    is_sound = all(len(set(group)) == len(group) and roles.issuperset(group) for group in groups)
    return groups if is_sound else []


def _pairs(groups: Iterable[list[str]]) -> frozenset[tuple[str, str]]:
    return frozenset(
        pair for group in groups for pair in (permutations(group, 2) if len(group) > 1 else [(group[0], group[0])])
    )
