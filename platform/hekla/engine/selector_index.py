"""Which pod selectors match which pods, kept up to date as jobs come and go.

Only selectors in the constraints of current jobs count. Pods are looked up by namespace and labels, so a new selector
costs one comparison for each combination of these, and a new match only for the jobs that it concerns.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from hekla.engine.constraints import NO_CONSTRAINTS, PodAffinityTerm, PodConstraints, PodSelector
from hekla.engine.job_info import JobInfo
from hekla.engine.job_twins import TwinGroups
from hekla.engine.model import PodGroupSpec, PodSpec

LabelSet = tuple[str, frozenset[tuple[str, str]]]
"""A namespace, and labels of pods in it."""
Terms = Mapping[PodSelector, Sequence[PodAffinityTerm]]
"""Terms by selector, each once."""
_NO_LABELS: frozenset[tuple[str, str]] = frozenset()


class SelectorIndex:
    """All pod selectors and the pods that they match. Equal pods that match the same ones share a class number.

    `anti_affinity_terms`, `preferred_terms`: the required anti-affinity and the preferred terms of all pods.
    """

    def __init__(self) -> None:
        self.anti_affinity_terms: Terms = {}
        self.preferred_terms: Terms = {}
        self._groups: defaultdict[LabelSet, dict[Hashable, PodGroupSpec]] = defaultdict(dict)
        self._is_sorted = False
        """Whether the jobs are in `_groups`: labels do not matter before there is a selector."""
        self._users: Counter[PodConstraints] = Counter()
        """The number of jobs with pods of these constraints."""
        self._selectors: dict[PodSelector, None] = {}
        self._matches: dict[LabelSet, frozenset[PodSelector]] = {}
        self._class_numbers: dict[Hashable, int] = {}
        self._is_dirty = False

    def add_all(self, keys: Iterable[Hashable], twins: TwinGroups) -> None:
        """Add jobs by key. `refresh` must follow."""
        if self._is_sorted:
            self._sort(zip(keys, twins.groups, strict=True))
        for first, positions in zip(twins.firsts(), twins.positions, strict=True):
            for constraints in _constraints(first):
                self._is_dirty |= constraints not in self._users
                self._users[constraints] += len(positions)

    def remove(self, key: Hashable, group: PodGroupSpec) -> None:
        """Remove a job. `refresh` must follow."""
        for label_set in _label_sets(group) if self._is_sorted else ():
            groups = self._groups[label_set]
            del groups[key]
            if not groups:
                del self._groups[label_set]
                self._matches.pop(label_set, None)
        for constraints in _constraints(group):
            self._users[constraints] -= 1
            if not self._users[constraints]:
                del self._users[constraints]
                self._is_dirty = True

    def refresh(self, groups: Mapping[Hashable, PodGroupSpec]) -> list[Hashable]:
        """Update the selectors. Returns the keys of the jobs with pods that match other selectors than before.

        `groups`: those of all jobs by key.
        """
        if not self._is_dirty:
            return []
        self._is_dirty = False
        if not self._is_sorted:
            self._is_sorted = True
            self._sort(groups.items())
        self.anti_affinity_terms = _by_selector(term for one in self._users for term in one.pod_anti_affinity)
        self.preferred_terms = _by_selector(term for one in self._users for _weight, term in one.preferred_pod_affinity)
        before, self._selectors = self._selectors, dict.fromkeys(s for one in self._users for s in one.selectors())
        changed = before.keys() ^ self._selectors.keys()
        concerned = [label_set for label_set in self._groups if _matching(changed, label_set)] if changed else []
        for label_set in concerned:
            self._matches.pop(label_set, None)
        return [*dict.fromkeys(key for label_set in concerned for key in self._groups[label_set])]

    def matched(self, groups: Sequence[PodGroupSpec], positions: Iterable[int]) -> set[int]:
        """Those of these positions where a selector matches some pods of the job."""
        if not self._selectors:
            return set()
        return {at for at in positions if any(map(self._matches_of, _label_sets(groups[at])))}

    def match_pods(self, jobs: Iterable[JobInfo]) -> None:
        """Set the matching selectors and class numbers of the pods of these jobs."""
        if not self._selectors and not self._class_numbers:
            return
        for job in jobs:
            found = {label_set: self._matches_of(label_set) for label_set in _label_sets(job.group)}
            if not any(found.values()) and not job.built_pods:
                continue
            for pod, kind in zip(job.pods, job.pod_classes, strict=True):
                pod.matching_selectors = found[_label_set(pod.spec, job.group)]
                pod.class_number = self._class_number(kind.number, pod.matching_selectors)

    def _sort(self, groups: Iterable[tuple[Hashable, PodGroupSpec]]) -> None:
        """Sort these jobs by the labels of their pods."""
        for key, group in groups:
            for label_set in _label_sets(group):
                self._groups[label_set][key] = group

    def _class_number(self, number: int, selectors: frozenset[PodSelector]) -> int:
        """The number of the class without selectors, else a negative one."""
        return (
            self._class_numbers.setdefault((number, selectors), -1 - len(self._class_numbers)) if selectors else number
        )

    def _matches_of(self, label_set: LabelSet) -> frozenset[PodSelector]:
        found = self._matches.get(label_set)
        if found is None:
            found = self._matches[label_set] = _matching(self._selectors, label_set)
        return found


def _by_selector(terms: Iterable[PodAffinityTerm]) -> Terms:
    found: defaultdict[PodSelector, list[PodAffinityTerm]] = defaultdict(list)
    for term in dict.fromkeys(terms):
        found[term.selector].append(term)
    return dict(found)


def _matching(selectors: Iterable[PodSelector], label_set: LabelSet) -> frozenset[PodSelector]:
    namespace, labels = label_set[0], dict(label_set[1])
    return frozenset(selector for selector in selectors if selector.matches(namespace, labels))


def _label_set(spec: PodSpec, group: PodGroupSpec) -> LabelSet:
    labels = frozenset(spec.labels.items()) if spec.labels else _NO_LABELS
    return spec.namespace or group.namespace, labels


def _label_sets(group: PodGroupSpec) -> set[LabelSet]:
    """The label sets of a job's pods. The pods of a role mostly share their labels."""
    pods = group.pods
    if len(pods) > 1:
        pods = tuple({(spec.namespace, id(spec.labels)): spec for spec in pods}.values())
    return {_label_set(spec, group) for spec in pods}


def _constraints(group: PodGroupSpec) -> Collection[PodConstraints]:
    some = [one for spec in group.pods if (one := spec.constraints) is not NO_CONSTRAINTS]
    return set({id(one): one for one in some}.values()) if some else ()
