"""Pod disruption budgets: no more pods are evicted than each budget allows now (`volcano-spec` §5.4).

Volcano never evicts pods without any labels (those of its jobs have some, as those of Hekla's jobs), does not count the
evictions of the same session, and lets `shuffle` evict every pod that no budget protects. Here a pod that no budget
selects may be evicted like any other, evictions of this session count against their budgets, and no pod is evicted
because it has no budget.
"""

from collections.abc import Sequence

import numpy as np

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.constraints import matches
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import DisruptionBudget, PodStatus
from hekla.engine.policy import PluginOption, SchedulerPolicy
from hekla.engine.session import Session

NAME = "pdb"
NEEDS = (
    Need(
        Input.BUDGETS,
        Lack.NOTHING,
        gettext_noop("It has no effect. Hekla asks the cluster for its disruption budgets before each eviction."),
        lambda _option, policy: not _shuffles_as_volcano(policy),
    ),
    Need(
        Input.BUDGETS,
        Lack.WRONG,
        gettext_noop("The action shuffle evicts all pods that have labels."),
        lambda _option, policy: _shuffles_as_volcano(policy),
    ),
    Need(
        Input.POD_LABELS,
        Lack.WRONG,
        gettext_noop("No pod is ever evicted."),
        lambda _option, policy: policy.follows_volcano,
    ),
    Need(
        Input.POD_LABELS,
        Lack.PART,
        gettext_noop("Only budgets for all pods of a namespace apply."),
        lambda _option, policy: not policy.follows_volcano,
    ),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Filter victims, and spare pods that their budgets protect."""
    budgets, follows = session.state.budgets, session.policy.follows_volcano
    left = np.array([budget.allowed for budget in budgets], dtype=float)

    def allowed(candidates: Sequence[PodInfo]) -> list[PodInfo]:
        return [victim for victim, may_go in _judge(budgets, left.copy(), candidates, follows) if may_go]

    def spared(_pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo]:
        return [victim for victim, may_go in _judge(budgets, left.copy(), candidates, follows) if not may_go]

    def update(pod: PodInfo, _row: int, sign: int) -> None:
        is_eviction = (sign < 0 and pod.status is PodStatus.RELEASING) or pod.status is PodStatus.RUNNING
        if is_eviction:
            left[_matching(budgets, pod)] += sign

    def evictable(_job: JobInfo, candidates: Sequence[PodInfo], _action: str) -> list[PodInfo]:
        return allowed(candidates)

    session.register(
        ExtensionPoint.PREEMPTABLE, option, lambda _pod, candidates: allowed(candidates), is_cacheable=True
    )
    session.register(
        ExtensionPoint.RECLAIMABLE, option, lambda _pod, candidates: allowed(candidates), is_cacheable=True
    )
    if follows:
        session.register(ExtensionPoint.VICTIM_TASKS, option, allowed)
        return
    session.on_change.append(update)
    session.register(ExtensionPoint.EVICTABLE, option, evictable, is_cacheable=True)
    session.register(ExtensionPoint.SPARED, option, spared, is_cacheable=True)


def _shuffles_as_volcano(policy: SchedulerPolicy) -> bool:
    return policy.follows_volcano and "shuffle" in policy.actions


def _judge(
    budgets: Sequence[DisruptionBudget], left: np.ndarray, candidates: Sequence[PodInfo], follows: bool
) -> list[tuple[PodInfo, bool]]:
    """Whether each candidate may be evicted: in order, while every budget that selects it has something left."""
    judged = []
    for victim in candidates:
        matching = _matching(budgets, victim)
        is_immune = follows and not (victim.spec.labels or victim.spec.has_more_labels)
        may_go = bool((left[matching] > 0).all()) and not is_immune
        left[matching] -= may_go
        judged.append((victim, may_go))
    return judged


def _matching(budgets: Sequence[DisruptionBudget], pod: PodInfo) -> list[int]:
    return [at for at, budget in enumerate(budgets) if _covers(budget, pod)]


def _covers(budget: DisruptionBudget, pod: PodInfo) -> bool:
    if budget.pods is not None:
        return pod.spec.uid in budget.pods
    return budget.namespace == pod.job.group.namespace and matches(budget.selector, pod.spec.labels)
