"""Disruption budgets of a cluster, as the engine's input: which pods each covers, and how many may be evicted now.

A cluster that counts disruptions itself says how many it allows. Pods that are being stopped do not count as disrupted
there until they have ended, so they are subtracted here. For other clusters everything is counted here, as Kubernetes
counts it. Labels of external pods are those when they were recorded.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.base import PodKey
from hekla.backends.kubernetes import names
from hekla.domain.cluster_objects import BUDGET_KINDS, ObjectKind
from hekla.domain.phases import PodPhase
from hekla.engine.constraints import Selector, matches
from hekla.engine.model import DisruptionBudget
from hekla.engine.pod_objects import label_selector
from hekla.scheduling import external_pods
from hekla.scheduling.cluster_objects import Digests, ObjectCache, Objects

Amount = str | int


@dataclass(frozen=True, slots=True)
class _ReportedBudget:
    """A budget as reported. `scope`: the tenant of its pods, empty for all; or the scope of external pods.

    `allowed`: as the cluster counts it, with pods that are stopping; None: it is counted here, from one of the others.
    """

    scope: str
    selector: Selector
    allowed: int | None
    min_available: Amount | None
    max_unavailable: Amount | None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "_ReportedBudget":
        """From a stored object."""
        spec, status = body["spec"], body.get("status", {})
        return cls(
            body["metadata"]["namespace"],
            label_selector(spec["selector"]) or (),
            status.get("disruptionsAllowed"),
            spec.get("minAvailable"),
            spec.get("maxUnavailable"),
        )

    def left(self, pods: Sequence[Pod]) -> int:
        """How many more of these pods may be evicted."""
        running = [pod for pod in pods if pod.phase == PodPhase.RUNNING]
        stopping = sum(pod.stopping for pod in running)
        if self.allowed is not None:
            return max(0, self.allowed - stopping)
        needed = (
            len(pods) - _amount(self.max_unavailable, len(pods))
            if self.min_available is None
            else _amount(self.min_available, len(pods))
        )
        return max(0, len(running) - stopping - needed)


def _reported_cache() -> ObjectCache[tuple[_ReportedBudget, ...]]:
    return ObjectCache(BUDGET_KINDS, _read_budgets, ())


def _read_budgets(objects: Objects) -> tuple[_ReportedBudget, ...]:
    return tuple(map(_ReportedBudget.read, objects[ObjectKind.DISRUPTION_BUDGET].values()))


@dataclass
class BudgetCache:
    """The budgets of one cluster."""

    _reported: ObjectCache[tuple[_ReportedBudget, ...]] = field(default_factory=_reported_cache)
    _covered: dict[int, tuple[object, Sequence[Sequence[Pod]]]] = field(default_factory=dict)
    """By job: its pods, and those of them that each budget covers."""

    def update(self, cluster: Cluster, digests: Digests) -> None:
        """Update from the database."""
        before = self._reported.parsed
        if self._reported.update(cluster, digests) and _coverage(self._reported.parsed) != _coverage(before):
            self._covered.clear()

    def budgets(self, cluster: Cluster, jobs: Iterable[tuple[Job, list[Pod]]]) -> tuple[DisruptionBudget, ...]:
        """The budgets for these jobs, with the pods that they cover."""
        reported = self._reported.parsed
        if not reported:
            return ()
        covered, by_budget = {}, [list[Pod]() for _ in reported]
        for job, pods in jobs:
            known = self._covered.get(job.pk)
            if known is None or known[0] is not pods:
                known = pods, [list(_covered_pods(budget, cluster, job, pods)) for budget in reported]
            covered[job.pk] = known
            for found, own in zip(by_budget, known[1], strict=True):
                found.extend(own)
        self._covered = covered
        return tuple(
            DisruptionBudget("", one.selector, one.left(pods), frozenset(str(pod.pk) for pod in pods))
            for one, pods in zip(reported, by_budget, strict=True)
        )


def _coverage(budgets: Iterable[_ReportedBudget]) -> object:
    return [(one.scope, one.selector) for one in budgets]


def _covered_pods(budget: _ReportedBudget, cluster: Cluster, job: Job, pods: Iterable[Pod]) -> Iterator[Pod]:
    scopes = (external_pods.object_scope(job),) if job.is_external else ("", job.tenant.slug)
    if budget.scope not in scopes:
        return
    for pod in pods:
        if not pod.is_final and matches(budget.selector, _labels(cluster, job, pod)):
            yield pod


def _labels(cluster: Cluster, job: Job, pod: Pod) -> Mapping[str, str]:
    """The labels of the pod at its backend: its own if it is external; else those of its task, and Hekla's."""
    if job.is_external:
        found: Mapping[str, str] = pod.external.labels
        return found
    key = PodKey(job.uid.hex, pod.task, pod.index, pod.attempt, job.tenant.slug)
    task = next((one for one in spec_of(job).tasks if one.name == pod.task), None)
    return {**(task.labels if task else {}), **names.labels(cluster.name, key)}


def _amount(text: Amount | None, everyone: int) -> int:
    """A number of pods, or a percentage of all, rounded up."""
    if isinstance(text, str):
        return math.ceil(int(text.removesuffix("%")) * everyone / 100)
    return text or 0
