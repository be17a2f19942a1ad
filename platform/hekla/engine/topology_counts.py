"""Counts of pods per node by selector, as Kubernetes' filters and scorers need them.

Allocated and pipelined pods count, and pods that were releasing before the session; pods that the session evicts do not
count. A count is updated from its first use on.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from hekla.engine.constraints import NO_CONSTRAINTS, PodAffinityTerm, PodSelector
from hekla.engine.job_info import PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.node_index import Counts
from hekla.engine.selector_index import SelectorIndex

Weigh = Callable[[PodInfo], int]


class TopologyCounts:
    """Counts per row of the node table. `node_pods`: the pods on each row; `update` must be called on every change."""

    def __init__(self, residents: Sequence[Mapping[str, PodInfo]], selector_index: SelectorIndex) -> None:
        self._node_pods = residents
        self._counters: dict[Hashable, tuple[Counts, Weigh]] = {}
        self._others: list[tuple[Counts, Weigh]] = []
        self._by_trait: dict[Hashable, list[tuple[Counts, Weigh]]] = defaultdict(list)
        """Counters that only pods with this trait change; `_others`: the other ones."""
        self._anti_affinity_terms = selector_index.anti_affinity_terms
        self._preferred_terms = selector_index.preferred_terms

    @property
    def has_preferences(self) -> bool:
        """Whether any pod has a preferred term."""
        return bool(self._preferred_terms)

    def count(self, kind: Hashable, weigh: Weigh, trait: PodSelector | PodAffinityTerm | None = None) -> Counts:
        """Per row the sum of `weigh` over its pods. The array is shared and follows every change.

        `trait`: only pods with it have a weight: this selector matches them, or they avoid or prefer by this term.
        """
        counter = self._counters.get(kind)
        if counter is None:
            counts = np.zeros(len(self._node_pods), dtype=np.int64)
            for row, pods in enumerate(self._node_pods):
                if pods:
                    counts[row] = sum(weigh(pod) for pod in pods.values() if is_counted(pod))
            counter = self._counters[kind] = counts, weigh
            (self._others if trait is None else self._by_trait[trait]).append(counter)
        return counter[0]

    def avoiding(self, pod: PodInfo) -> Iterator[PodAffinityTerm]:
        """The anti-affinity terms of all pods that match this one, in any order."""
        return chain.from_iterable(self._anti_affinity_terms.get(one, ()) for one in pod.matching_selectors)

    def preferring(self, pod: PodInfo) -> Iterator[PodAffinityTerm]:
        """The preferred terms of all pods that match this one, in any order."""
        return chain.from_iterable(self._preferred_terms.get(one, ()) for one in pod.matching_selectors)

    def matching(self, selector: PodSelector) -> Counts:
        """Per row the pods that the selector matches."""
        return self.count(("seen", selector), lambda pod: int(selector in pod.matching_selectors), selector)

    def matching_not_terminating(self, selector: PodSelector) -> Counts:
        """Per row the matching pods that are not releasing."""

        def weigh(pod: PodInfo) -> int:
            return int(selector in pod.matching_selectors and not _is_terminating(pod))

        return self.count(("staying", selector), weigh, selector)

    def update(self, pod: PodInfo, row: int, sign: int) -> None:
        """Count a pod that came to the row (sign 1) or left it (-1)."""
        counters = self._others
        if self._by_trait and (traits := _traits(pod)):
            counters = [*counters, *chain.from_iterable(self._by_trait.get(trait, ()) for trait in traits)]
        for counts, weigh in counters:
            counts[row] += sign * weigh(pod)


def _traits(pod: PodInfo) -> set[Hashable]:
    constraints = pod.spec.constraints
    if constraints is NO_CONSTRAINTS:
        return {*pod.matching_selectors}
    preferred = (term for _weight, term in constraints.preferred_pod_affinity)
    return {*pod.matching_selectors, *constraints.pod_anti_affinity, *preferred}


def _is_terminating(pod: PodInfo) -> bool:
    return pod.spec.status is PodStatus.RELEASING


def is_counted(pod: PodInfo) -> bool:
    """Whether a pod on a node counts: not if the session evicts it."""
    return pod.status is not PodStatus.RELEASING or _is_terminating(pod)
