"""Which roles of a job want to be together, and which apart, as its annotations say (`volcano-spec` §5.6)."""

from collections.abc import Iterable, Mapping
from itertools import permutations

from hekla.engine.model import PodGroupSpec

_AFFINITY = "volcano.sh/task-topology-affinity"
_ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
_ORDER = "volcano.sh/task-topology-task-order"
_SELF_ANTI, _INTER, _SELF, _INTER_ANTI = 4, 3, 2, 1
"""How strong a relation is: roles with stronger ones are placed first."""


class Relations:
    """Groups of roles as `a,b;c`: each of a group with each other; a role alone is meant with itself."""

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
        """Whether anything is said of any role."""
        return bool(self._strength)

    def concern(self, role: str) -> bool:
        """Whether anything is said of the role."""
        return role in self._strength

    def rank(self, role: str) -> tuple[int, int]:
        """The highest goes first: by the order that the job states, then by how strong its relations are."""
        return self._order.get(role, 0), self._strength.get(role, 0)

    def affinity(self, role: str, others: Mapping[str, int]) -> int:
        """How much a role wants to be with these: one for each that it wants, one less for each that it does not."""
        return sum(count * ((role, other) in self._together) for other, count in others.items()) + self.dislike(
            role, others
        )

    def dislike(self, role: str, others: Mapping[str, int]) -> int:
        """Minus one for each of these that the role does not want to be with."""
        return -sum(count * ((role, other) in self._apart) for other, count in others.items())

    def disliked(self, role: str) -> list[str]:
        """The roles it does not want to be with."""
        return [right for left, right in self._apart if left == role]


def _groups(job: PodGroupSpec, name: str) -> list[list[str]]:
    """The groups that an annotation names; none where it names a role twice, or one that the job does not have."""
    text = job.annotations.get(name, "").strip()
    groups = [[role.strip() for role in group.split(",")] for group in text.split(";")] if text else []
    roles = {spec.role for spec in job.pods}
    is_sound = all(len(set(group)) == len(group) and roles.issuperset(group) for group in groups)
    return groups if is_sound else []


def _pairs(groups: Iterable[list[str]]) -> frozenset[tuple[str, str]]:
    return frozenset(
        pair for group in groups for pair in (permutations(group, 2) if len(group) > 1 else [(group[0], group[0])])
    )
