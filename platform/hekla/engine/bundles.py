"""Whom a whole gang may push out of a domain, in pieces that make sense to evict (`volcano-spec` §4, gangpreempt).

A *safe* bundle is one task that its gang can do without. A *whole* bundle is all the rest of a gang, inside the domain
and outside: a gang that loses one task of its minimum has lost them all.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hekla.engine.columns import Vector
from hekla.engine.gangs import ALLOCATED, Gang, Member
from hekla.engine.subgroups import SubGroup, subgroups


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tasks that go together. `local`: what goes from inside the domain; `plugins`: by whose leave."""

    gang: Gang
    victims: tuple[Member, ...]
    local: Vector
    is_safe: bool
    plugins: tuple[str, ...] = ()

    def worth(self, need: Vector) -> float:
        """How much of what is needed it frees in the domain, for what it costs everywhere."""
        asked = need > 0
        whole: Vector = sum((victim.request for victim in self.victims), np.zeros_like(need))
        gain = np.minimum(self.local[asked] / need[asked], 1.0).sum()
        cost = (whole[asked] / need[asked]).sum()
        return float(gain / cost) if cost else 0.0


def bundles(gang: Gang, candidates: Iterable[Member], inside: Callable[[Member], bool]) -> list[Bundle]:
    """The bundles of one gang; its whole one only where all that it still holds may go."""
    may_go = sorted(candidates, key=lambda member: (member.task.priority, member.task.uid))
    local = [member for member in may_go if inside(member)]
    safe = local if not gang.is_ready else _spare(gang, local)
    found = [Bundle(gang, (member,), member.request, is_safe=True) for member in safe]
    spared = {member.task.uid for member in safe}
    rest = [member for member in may_go if member.task.uid not in spared]
    held = [m for m in gang.members if m.status in ALLOCATED and m.task.uid not in spared]
    here = [member.request for member in rest if inside(member)]
    if here and len(rest) == len(held):
        found.append(Bundle(gang, tuple(rest), np.sum(here, axis=0), is_safe=False))
    return found


def _spare(gang: Gang, local: Sequence[Member]) -> list[Member]:
    """Those above the minimum of the gang, of their role and of their sub-group, the least urgent first."""
    ready, roles = gang.ready_count, Counter(m.task.role for m in gang.members if m.status in ALLOCATED)
    groups: Counter[SubGroup] = Counter(subgroups(gang).of(m) for m in gang.members if m.status in ALLOCATED)
    chosen = []
    for member in local:
        role, group = member.task.role, subgroups(gang).of(member)
        is_needed = roles[role] <= gang.job.min_task_member.get(role, 0)
        is_needed |= group.policy is not None and groups[group] <= group.least
        if ready > gang.job.min_available and not is_needed:
            chosen.append(member)
            ready, roles[role], groups[group] = ready - 1, roles[role] - 1, groups[group] - 1
    return chosen
