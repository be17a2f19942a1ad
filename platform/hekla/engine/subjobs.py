"""Sub-jobs: gangs within a job, formed by the labels that a sub-group policy names (`volcano-spec` §3.6).

A job without policies is one sub-job. Pods that match no policy form a sub-job with a minimum of one pod.
"""

from collections.abc import Callable, Iterator
from functools import cached_property

from hekla.engine.columns import Vector
from hekla.engine.constraints import matches
from hekla.engine.job_info import ALLOCATED, JobInfo, PodInfo
from hekla.engine.model import NetworkTopology, PodStatus, SubGroupPolicy

_ALLOCATED = ALLOCATED | {PodStatus.SUCCEEDED}
_PIPELINED = _ALLOCATED | {PodStatus.PIPELINED}
_VALID = _PIPELINED | {PodStatus.PENDING}
Key = tuple[int, tuple[str, ...]]


class SubJobInfo:
    """A sub-job. `policy_index`: one past the last for unmatched pods. `label_values`: values of the policy's keys."""

    def __init__(self, job: JobInfo, index: int, values: tuple[str, ...]) -> None:
        self.job, self.policy_index, self.label_values = job, index, values
        policies = job.group.sub_groups
        self.policy: SubGroupPolicy | None = policies[index] if index < len(policies) else None
        self.pods: list[PodInfo] = []

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole job: there are no policies."""
        return not self.job.group.sub_groups

    @property
    def min_available(self) -> int:
        """How many of its pods must be placed together."""
        if self.is_whole:
            return self.job.group.min_available
        return self.policy.size if self.policy else 1

    @property
    def topology(self) -> NetworkTopology | None:
        """Its network topology."""
        if self.is_whole:
            return self.job.group.topology
        return self.policy.topology if self.policy else None

    @cached_property
    def priority(self) -> int:
        return max((pod.spec.priority for pod in self.pods), default=0)

    @cached_property
    def request(self) -> Vector:
        """The sum of the requests of its pods."""
        total: Vector = sum((pod.request for pod in self.pods[1:]), self.pods[0].request.copy())
        return total

    @property
    def is_ready(self) -> bool:
        return self._count(_ALLOCATED) >= self.min_available

    @property
    def is_pipelined(self) -> bool:
        return self._count(_PIPELINED) >= self.min_available

    @property
    def is_valid(self) -> bool:
        return self._count(_VALID) >= self.min_available

    def pending(self) -> list[PodInfo]:
        """The pending pods with requests."""
        return [m for m in self.pods if m.status is PodStatus.PENDING and not m.best_effort]

    def _count(self, statuses: frozenset[PodStatus]) -> int:
        return sum(m.status in statuses or (m.best_effort and m.status is PodStatus.PENDING) for m in self.pods)


class SubJobs:
    """The sub-jobs of one job."""

    def __init__(self, job: JobInfo) -> None:
        self.job = job
        self._found: dict[Key, SubJobInfo] = {}
        self._of: dict[str, SubJobInfo] = {}
        for pod in job.pods:
            key = _key(job, pod)
            subjob = self._found.setdefault(key, SubJobInfo(job, *key))
            subjob.pods.append(pod)
            self._of[pod.spec.uid] = subjob

    def __iter__(self) -> Iterator[SubJobInfo]:
        return iter(self._found[key] for key in sorted(self._found))

    def of_pod(self, pod: PodInfo) -> SubJobInfo:
        """The sub-job of a pod."""
        return self._of[pod.spec.uid]

    def has_enough(self, is_good: Callable[[SubJobInfo], bool]) -> bool:
        """Whether each policy has enough sub-jobs for which `is_good` holds."""
        return all(not self.missing(index, is_good) for index in range(len(self.job.group.sub_groups)))

    def missing(self, index: int, is_good: Callable[[SubJobInfo], bool]) -> int:
        """How many more sub-jobs of a policy must be good."""
        wanted = self.job.group.sub_groups[index].at_least
        return max(0, wanted - sum(subjob.policy_index == index and is_good(subjob) for subjob in self._found.values()))


def subjobs_of(job: JobInfo) -> SubJobs:
    """The sub-jobs of a job, built once."""
    if job.subjobs is None:
        job.subjobs = SubJobs(job)
    found: SubJobs = job.subjobs
    return found


def _key(job: JobInfo, pod: PodInfo) -> Key:
    policies, labels = job.group.sub_groups, pod.spec.labels
    for index, policy in enumerate(policies):
        values = tuple(labels.get(key, "") for key in policy.keys)
        if values and all(values) and policy.selector is not None and matches(policy.selector, labels):
            return index, values
    return len(policies), ()
