"""How many pods of a kind are on each node, kept up to date: what Kubernetes' filters and scorers count.

They see every pod that holds a place or was promised one, also those that were on their way out before, and do not see
those that the session evicts. A kind is counted from when it is first asked for; where nobody asks, nothing is counted.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from hekla.engine.conditions import NOTHING, Conditions, PodSelector, PodTerm
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import TaskStatus
from hekla.engine.nodeindex import Counts

Weigh = Callable[[Member], int]


class Sights:
    """Which selectors there are, and which pods each of them sees. What nothing tells apart is of one shape."""

    def __init__(self) -> None:
        self.apart: tuple[PodTerm, ...] = ()
        """Every required anti-affinity that some pod has."""
        self.preferred: tuple[PodTerm, ...] = ()
        """Every preferred affinity or anti-affinity that some pod has."""
        self._conditions: dict[Conditions, None] = {NOTHING: None}
        self._selectors: tuple[PodSelector, ...] = ()
        self._seen: dict[Hashable, frozenset[PodSelector]] = {}
        self._shapes: dict[Hashable, int] = {}

    def learn(self, gangs: Iterable[Gang]) -> bool:
        """Take in the conditions of these jobs. True: there are selectors now with which nobody was looked at yet."""
        conditions = {id(task.conditions): task.conditions for gang in gangs for task in gang.job.tasks}.values()
        before, known = len(self._conditions), len(self._selectors)
        self._conditions |= dict.fromkeys(conditions)
        if len(self._conditions) > before:
            everyone = self._conditions
            self.apart = tuple(dict.fromkeys(term for one in everyone for term in one.apart))
            self.preferred = tuple(dict.fromkeys(term for one in everyone for _weight, term in one.preferred_pods))
            self._selectors = tuple(dict.fromkeys(selector for one in everyone for selector in one.selectors()))
        if len(self._selectors) == known:
            return False
        self._seen.clear()
        return True

    def look(self, gangs: Iterable[Gang]) -> None:
        """Find out which selectors see the pods of these jobs."""
        if not self._selectors:
            return
        for gang in gangs:
            for member, kind in zip(gang.members, gang.kinds, strict=True):
                member.seen_by = self._seeing(member)
                member.shape = self._shapes.setdefault((kind.number, member.seen_by), len(self._shapes))

    def _seeing(self, member: Member) -> frozenset[PodSelector]:
        namespace, labels = member.task.namespace or member.job.job.namespace, member.task.labels
        key = (namespace, frozenset(labels.items()))
        found = self._seen.get(key)
        if found is None:
            found = frozenset(selector for selector in self._selectors if selector.sees(namespace, labels))
            self._seen[key] = found
        return found


class Census:
    """`residents`: for each row the tasks on it. `hear` must be told of every change."""

    def __init__(self, residents: Sequence[Mapping[str, Member]], sights: Sights) -> None:
        self._residents = residents
        self._tallies: dict[Hashable, tuple[Counts, Weigh]] = {}
        self.apart, self.preferred = sights.apart, sights.preferred

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
