"""Disruption budgets: of a kind of pods no more are evicted than may be missing now (`volcano-spec` §5.4).

Volcano never evicts pods without labels, forgets between two questions whom it evicts already, and lets `shuffle` evict
everybody whom no budget protects. Here a pod that no budget selects may go like any other, evictions of this session
count against their budgets, and nobody is evicted because of having none.
"""

from collections.abc import Sequence

import numpy as np

from hekla.engine.conditions import matches
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import DisruptionBudget, TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session


def open_session(session: Session, option: PluginOption) -> None:
    """Filter victims, and spare those whom their budgets protect."""
    budgets, follows = session.state.budgets, session.policy.follows_volcano
    left = np.array([budget.allowed for budget in budgets], dtype=float)

    def allowed(candidates: Sequence[Member]) -> list[Member]:
        return [victim for victim, may_go in _judge(budgets, left.copy(), candidates, follows) if may_go]

    def spared(_member: Member, candidates: Sequence[Member]) -> list[Member]:
        return [victim for victim, may_go in _judge(budgets, left.copy(), candidates, follows) if not may_go]

    def follow(member: Member, _row: int, sign: int) -> None:
        is_eviction = (sign < 0 and member.status is TaskStatus.RELEASING) or member.status is TaskStatus.RUNNING
        if is_eviction:
            left[_matching(budgets, member)] += sign

    def evictable(_gang: Gang, candidates: Sequence[Member], _action: str) -> list[Member]:
        return allowed(candidates)

    session.register(Point.PREEMPTABLE, option, lambda _member, candidates: allowed(candidates), is_lasting=True)
    session.register(Point.RECLAIMABLE, option, lambda _member, candidates: allowed(candidates), is_lasting=True)
    if follows:
        session.register(Point.VICTIM_TASKS, option, allowed)
        return
    session.on_change.append(follow)
    session.register(Point.EVICTABLE, option, evictable, is_lasting=True)
    session.register(Point.SPARED, option, spared, is_lasting=True)


def _judge(
    budgets: Sequence[DisruptionBudget], left: np.ndarray, candidates: Sequence[Member], follows: bool
) -> list[tuple[Member, bool]]:
    """In the order given, while every budget that selects the pod has something left."""
    judged = []
    for victim in candidates:
        matching = _matching(budgets, victim)
        may_go = bool((left[matching] > 0).all()) and not (follows and not victim.task.labels)
        left[matching] -= may_go
        judged.append((victim, may_go))
    return judged


def _matching(budgets: Sequence[DisruptionBudget], member: Member) -> list[int]:
    namespace, labels = member.job.job.namespace, member.task.labels
    return [at for at, b in enumerate(budgets) if b.namespace == namespace and matches(b.selector, labels)]
