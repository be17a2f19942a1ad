"""Counts of pods per node by selector, as Kubernetes' filters and scorers need them.

Allocated and pipelined pods count, and pods that were releasing before the session; pods that the session evicts do not
count. A count is updated from its first use on.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from hekla.engine.constraints import NO_CONSTRAINTS, PodAffinityTerm, PodConstraints, PodSelector
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.node_index import Counts

Weigh = Callable[[PodInfo], int]


class SelectorIndex:
    """All pod selectors and the pods that they match. Equal pods that match the same ones share a class number."""

    def __init__(self) -> None:
        self.anti_affinity_terms: tuple[PodAffinityTerm, ...] = ()
        """The required anti-affinity terms of all pods."""
        self.preferred_terms: tuple[PodAffinityTerm, ...] = ()
        """The preferred affinity and anti-affinity terms of all pods."""
        self._constraints: dict[PodConstraints, None] = {NO_CONSTRAINTS: None}
        self._selectors: tuple[PodSelector, ...] = ()
        self._matches: dict[Hashable, frozenset[PodSelector]] = {}
        self._class_numbers: dict[Hashable, int] = {}

    def add_selectors(self, jobs: Iterable[JobInfo]) -> bool:
        """Add the constraints of these jobs. True if there are new selectors: all pods must be matched again."""
        conditions = {id(spec.constraints): spec.constraints for job in jobs for spec in job.group.pods}.values()
        before, known = len(self._constraints), len(self._selectors)
        self._constraints |= dict.fromkeys(conditions)
        if len(self._constraints) > before:
            everyone = self._constraints
            self.anti_affinity_terms = tuple(dict.fromkeys(term for one in everyone for term in one.pod_anti_affinity))
            self.preferred_terms = tuple(
                dict.fromkeys(term for one in everyone for _weight, term in one.preferred_pod_affinity)
            )
            self._selectors = tuple(dict.fromkeys(selector for one in everyone for selector in one.selectors()))
        if len(self._selectors) == known:
            return False
        self._matches.clear()
        return True

    def match_pods(self, jobs: Iterable[JobInfo]) -> None:
        """Set the matching selectors and class numbers of the pods of these jobs."""
        if not self._selectors:
            return
        for job in jobs:
            for pod, kind in zip(job.pods, job.pod_classes, strict=True):
                pod.matching_selectors = self._matching(pod)
                pod.class_number = self._class_numbers.setdefault(
                    (kind.number, pod.matching_selectors), len(self._class_numbers)
                )

    def _matching(self, pod: PodInfo) -> frozenset[PodSelector]:
        namespace, labels = pod.spec.namespace or pod.job.group.namespace, pod.spec.labels
        key = (namespace, frozenset(labels.items()))
        found = self._matches.get(key)
        if found is None:
            found = frozenset(selector for selector in self._selectors if selector.matches(namespace, labels))
            self._matches[key] = found
        return found


class TopologyCounts:
    """Counts per row of the node table. `node_pods`: the pods on each row; `update` must be called on every change."""

    def __init__(self, residents: Sequence[Mapping[str, PodInfo]], selector_index: SelectorIndex) -> None:
        self._node_pods = residents
        self._counters: dict[Hashable, tuple[Counts, Weigh]] = {}
        self.anti_affinity_terms, self.preferred_terms = (
            selector_index.anti_affinity_terms,
            selector_index.preferred_terms,
        )

    def count(self, kind: Hashable, weigh: Weigh) -> Counts:
        """Per row the sum of `weigh` over its pods. The array is shared and follows every change."""
        if kind not in self._counters:
            sums = (sum(weigh(pod) for pod in pods.values() if _is_counted(pod)) for pods in self._node_pods)
            self._counters[kind] = (np.fromiter(sums, dtype=np.int64, count=len(self._node_pods)), weigh)
        return self._counters[kind][0]

    def matching(self, selector: PodSelector) -> Counts:
        """Per row the pods that the selector matches."""
        return self.count(("seen", selector), lambda pod: int(selector in pod.matching_selectors))

    def matching_not_terminating(self, selector: PodSelector) -> Counts:
        """Per row the matching pods that are not releasing."""
        return self.count(
            ("staying", selector), lambda pod: int(selector in pod.matching_selectors and not _is_terminating(pod))
        )

    def update(self, pod: PodInfo, row: int, sign: int) -> None:
        """Count a pod that came to the row (sign 1) or left it (-1)."""
        for counts, weigh in self._counters.values():
            counts[row] += sign * weigh(pod)


def _is_terminating(pod: PodInfo) -> bool:
    return pod.spec.status is PodStatus.RELEASING


def _is_counted(pod: PodInfo) -> bool:
    return pod.status is not PodStatus.RELEASING or _is_terminating(pod)
