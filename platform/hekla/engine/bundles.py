"""Bundles: groups of pods that gang evictions evict together (`volcano-spec` §4, gangpreempt).

A *safe* bundle is one pod above its job's minimum. A *whole* bundle is all the rest of a job, inside and outside the
hypernode, because a job below its minimum loses everything anyway.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hekla.engine.columns import Vector
from hekla.engine.job_info import ALLOCATED, JobInfo, PodInfo
from hekla.engine.subjobs import SubJobInfo, subjobs_of


@dataclass(frozen=True, slots=True)
class Bundle:
    """Pods that are evicted together. `freed_here`: freed in the hypernode; `plugins`: those that allowed it."""

    job: JobInfo
    victims: tuple[PodInfo, ...]
    freed_here: Vector
    is_safe: bool
    plugins: tuple[str, ...] = ()

    def efficiency(self, need: Vector) -> float:
        """The part of `need` that it frees in the hypernode, divided by what it frees everywhere."""
        requested = need > 0
        whole: Vector = sum((victim.request for victim in self.victims), np.zeros_like(need))
        gain = np.minimum(self.freed_here[requested] / need[requested], 1.0).sum()
        cost = (whole[requested] / need[requested]).sum()
        return float(gain / cost) if cost else 0.0


def bundles(job: JobInfo, candidates: Iterable[PodInfo], inside: Callable[[PodInfo], bool]) -> list[Bundle]:
    """The bundles of one job; the whole bundle only if all pods that it still has placed may be evicted."""
    may_go = sorted(candidates, key=lambda pod: (pod.spec.priority, pod.spec.uid))
    local = [pod for pod in may_go if inside(pod)]
    safe = local if not job.is_ready else _surplus(job, local)
    found = [Bundle(job, (pod,), pod.request, is_safe=True) for pod in safe]
    spared = {pod.spec.uid for pod in safe}
    rest = [pod for pod in may_go if pod.spec.uid not in spared]
    held = [m for m in job.pods if m.status in ALLOCATED and m.spec.uid not in spared]
    here = [pod.request for pod in rest if inside(pod)]
    if here and len(rest) == len(held):
        found.append(Bundle(job, tuple(rest), np.sum(here, axis=0), is_safe=False))
    return found


def _surplus(job: JobInfo, local: Sequence[PodInfo]) -> list[PodInfo]:
    """Pods above the minimums of job, role and sub-job, the lowest priority first."""
    ready, roles = job.ready_count, Counter(m.spec.role for m in job.pods if m.status in ALLOCATED)
    groups: Counter[SubJobInfo] = Counter(subjobs_of(job).of_pod(m) for m in job.pods if m.status in ALLOCATED)
    chosen = []
    for pod in local:
        role, group = pod.spec.role, subjobs_of(job).of_pod(pod)
        is_needed = roles[role] <= job.group.min_task_member.get(role, 0)
        is_needed |= group.policy is not None and groups[group] <= group.min_available
        if ready > job.group.min_available and not is_needed:
            chosen.append(pod)
            ready, roles[role], groups[group] = ready - 1, roles[role] - 1, groups[group] - 1
    return chosen
