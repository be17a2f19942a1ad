"""Which pod selectors match which pods, kept up to date as jobs come and go.

Only selectors in the constraints of current jobs count. Pods are looked up by namespace and labels, so a new selector
costs one comparison for each combination of these, and a new match only for the jobs that it concerns.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from hekla.engine.constraints import NO_CONSTRAINTS, PodAffinityTerm, PodConstraints, PodSelector
from hekla.engine.job_info import JobInfo
from hekla.engine.model import PodSpec

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
        self._jobs: defaultdict[LabelSet, dict[int, JobInfo]] = defaultdict(dict)
        self._unsorted: dict[int, JobInfo] = {}
        """Jobs by id that are not in `_jobs` yet: labels do not matter before there is a selector."""
        self._users: Counter[PodConstraints] = Counter()
        """The number of jobs with pods of these constraints."""
        self._selectors: dict[PodSelector, None] = {}
        self._matches: dict[LabelSet, frozenset[PodSelector]] = {}
        self._class_numbers: dict[Hashable, int] = {}
        self._is_dirty = False

    def add_all(self, jobs: Sequence[JobInfo], twins: Iterable[Sequence[JobInfo]]) -> None:
        """Add jobs; `twins`: the same jobs, those with equal constraints together. `refresh` must follow."""
        self._unsorted.update(zip(map(id, jobs), jobs, strict=True))
        for equals in twins:
            for constraints in _constraints(equals[0]):
                self._is_dirty |= constraints not in self._users
                self._users[constraints] += len(equals)

    def remove(self, job: JobInfo) -> None:
        """Remove a job. `refresh` must follow."""
        is_unsorted = self._unsorted.pop(id(job), None) is not None
        for label_set in () if is_unsorted else _label_sets(job):
            jobs = self._jobs[label_set]
            del jobs[id(job)]
            if not jobs:
                del self._jobs[label_set]
                self._matches.pop(label_set, None)
        for constraints in _constraints(job):
            self._users[constraints] -= 1
            if not self._users[constraints]:
                del self._users[constraints]
                self._is_dirty = True

    def refresh(self) -> list[JobInfo]:
        """Update the selectors. Returns the jobs with pods that match other selectors than before."""
        if not self._is_dirty:
            return []
        self._is_dirty = False
        self._sort_jobs()
        self.anti_affinity_terms = _by_selector(term for one in self._users for term in one.pod_anti_affinity)
        self.preferred_terms = _by_selector(term for one in self._users for _weight, term in one.preferred_pod_affinity)
        before, self._selectors = self._selectors, dict.fromkeys(s for one in self._users for s in one.selectors())
        changed = before.keys() ^ self._selectors.keys()
        concerned = [label_set for label_set in self._jobs if _matching(changed, label_set)] if changed else []
        for label_set in concerned:
            self._matches.pop(label_set, None)
        return list({key: job for label_set in concerned for key, job in self._jobs[label_set].items()}.values())

    def match_pods(self, jobs: Iterable[JobInfo]) -> None:
        """Set the matching selectors and class numbers of the pods of these jobs."""
        if not self._selectors and not self._class_numbers:
            return
        self._sort_jobs()
        for job in jobs:
            found = {label_set: self._matches_of(label_set) for label_set in _label_sets(job)}
            if not any(found.values()) and not job.built_pods:
                continue
            for pod, kind in zip(job.pods, job.pod_classes, strict=True):
                pod.matching_selectors = found[_label_set(pod.spec, job)]
                pod.class_number = self._class_number(kind.number, pod.matching_selectors)

    def _sort_jobs(self) -> None:
        """Sort the jobs by the labels of their pods."""
        for key, job in self._unsorted.items():
            for label_set in _label_sets(job):
                self._jobs[label_set][key] = job
        self._unsorted.clear()

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


def _label_set(spec: PodSpec, job: JobInfo) -> LabelSet:
    labels = frozenset(spec.labels.items()) if spec.labels else _NO_LABELS
    return spec.namespace or job.group.namespace, labels


def _label_sets(job: JobInfo) -> set[LabelSet]:
    """The label sets of a job's pods. The pods of a role mostly share their labels."""
    pods = job.group.pods
    if len(pods) > 1:
        pods = tuple({(spec.namespace, id(spec.labels)): spec for spec in pods}.values())
    return {_label_set(spec, job) for spec in pods}


def _constraints(job: JobInfo) -> Collection[PodConstraints]:
    some = [one for spec in job.group.pods if (one := spec.constraints) is not NO_CONSTRAINTS]
    return set({id(one): one for one in some}.values()) if some else ()
