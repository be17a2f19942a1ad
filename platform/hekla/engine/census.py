"""How many pods of a kind are on each node, kept up to date: what Kubernetes' filters and scorers count.

They see every pod that holds a place or was promised one, also those that were on their way out before, and do not see
those that the session evicts. A kind is counted from when it is first asked for; where nobody asks, nothing is counted.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from hekla.engine.conditions import PodSelector, PodTerm
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import TaskStatus
from hekla.engine.nodeindex import Counts

Weigh = Callable[[Member], int]


class Census:
    """`residents`: for each row the tasks on it. `hear` must be told of every change."""

    def __init__(self, residents: Sequence[Mapping[str, Member]]) -> None:
        self._residents = residents
        self._tallies: dict[Hashable, tuple[Counts, Weigh]] = {}
        self.apart: tuple[PodTerm, ...] = ()
        """Every required anti-affinity that some pod has."""
        self.preferred: tuple[PodTerm, ...] = ()
        """Every preferred affinity or anti-affinity that some pod has."""

    def register(self, gangs: Iterable[Gang]) -> None:
        """Find out which selectors see which pods, and give pods that nothing tells apart one shape."""
        members = [member for gang in gangs for member in gang.members]
        conditions = {id(member.task.conditions): member.task.conditions for member in members}.values()
        self.apart = tuple(dict.fromkeys(term for one in conditions for term in one.apart))
        self.preferred = tuple(dict.fromkeys(term for one in conditions for _weight, term in one.preferred_pods))
        selectors = tuple(dict.fromkeys(selector for one in conditions for selector in one.selectors()))
        if not selectors:
            return
        _look(members, selectors)
        shapes: dict[Hashable, int] = {}
        for member in members:
            member.shape = shapes.setdefault((member.shape, member.seen_by), len(shapes))

    def count(self, kind: Hashable, weigh: Weigh) -> Counts:
        """For each row the sum over its pods. The array stays the same and follows every change."""
        if kind not in self._tallies:
            sums = (sum(weigh(m) for m in residents.values() if _is_seen(m)) for residents in self._residents)
            self._tallies[kind] = (np.fromiter(sums, dtype=np.int64, count=len(self._residents)), weigh)
        return self._tallies[kind][0]

    def seen_by(self, selector: PodSelector) -> Counts:
        """Pods that the selector sees."""
        return self.count(("seen", selector), lambda member: int(selector in member.seen_by))

    def staying(self, selector: PodSelector) -> Counts:
        """Those of them that are not on their way out."""
        return self.count(("staying", selector), lambda member: int(selector in member.seen_by and not _leaves(member)))

    def hear(self, member: Member, row: int, sign: int) -> None:
        """A pod came to the row (1) or left it (-1)."""
        for counts, weigh in self._tallies.values():
            counts[row] += sign * weigh(member)


def _leaves(member: Member) -> bool:
    return member.task.status is TaskStatus.RELEASING


def _is_seen(member: Member) -> bool:
    return member.status is not TaskStatus.RELEASING or _leaves(member)


def _look(members: Iterable[Member], selectors: Sequence[PodSelector]) -> None:
    seen: dict[Hashable, frozenset[PodSelector]] = {}
    for member in members:
        namespace, labels = member.task.namespace or member.job.job.namespace, member.task.labels
        key = (namespace, frozenset(labels.items()))
        if key not in seen:
            seen[key] = frozenset(selector for selector in selectors if selector.sees(namespace, labels))
        member.seen_by = seen[key]
