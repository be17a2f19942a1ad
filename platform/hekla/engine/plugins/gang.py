"""All or nothing: a gang starts when its minimum has places (`volcano-spec` §5.1)."""

from collections.abc import Callable, Sequence
from operator import attrgetter

from hekla.engine.closing import held_count
from hekla.engine.decisions import Cause, Reason
from hekla.engine.gangs import ALLOCATED, Gang, Member
from hekla.engine.model import TaskStatus
from hekla.engine.points import Point, Vote
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.engine.subgroups import SubGroup, subgroups

_PLACED = ALLOCATED | {TaskStatus.SUCCEEDED}
_PROMISED = _PLACED | {TaskStatus.PIPELINED}
_VALID = _PROMISED | {TaskStatus.PENDING}
_IS_VALID, _IS_READY, _IS_PIPELINED = attrgetter("is_valid"), attrgetter("is_ready"), attrgetter("is_pipelined")


def open_session(session: Session, option: PluginOption) -> None:
    """Gangs below their minimum come first; they are ready only with all of it."""
    session.register(Point.JOB_VALID, option, _invalid, is_lasting=True)
    session.register(Point.JOB_ORDER, option, _is_ready, is_lasting=True)
    session.register(Point.JOB_READY, option, _is_ready)
    session.register(Point.JOB_PIPELINED, option, _pipelined, is_lasting=True)
    session.register(Point.SUBJOB_ORDER, option, lambda left, right: int(left.is_ready) - int(right.is_ready))
    session.register(Point.SUBJOB_READY, option, lambda group: group.is_ready)
    session.register(Point.SUBJOB_PIPELINED, option, _subgroup_pipelined)
    session.register(Point.JOB_STARVING, option, _is_starving, is_lasting=True)
    session.register(Point.PREEMPTABLE, option, _surplus, is_lasting=True)
    session.register(Point.RECLAIMABLE, option, _surplus, is_lasting=True)
    session.register(Point.EVICTABLE, option, lambda _gang, candidates, _action: list(candidates), is_lasting=True)
    session.register(Point.SPARED, option, _needed, is_lasting=True)
    session.register(Point.UNSCHEDULABLE, option, _is_unschedulable)


def _invalid(gang: Gang) -> Reason | None:
    if gang.roles_have(_VALID) and gang.valid_count >= gang.job.min_available and _groups(gang, _IS_VALID):
        return None
    missing = max(gang.job.min_available - gang.valid_count, 1)
    return Reason(Cause.GANG, "allocate", "gang", "not_enough_pods", tasks=missing)


def _is_ready(gang: Gang) -> bool:
    return gang.is_ready and gang.roles_have(_PLACED) and _groups(gang, _IS_READY)


def _is_starving(gang: Gang) -> bool:
    return gang.waiting_count + gang.ready_count < gang.job.min_available


def _is_unschedulable(gang: Gang) -> bool:
    """Its minimum has no places, and it is not only waiting for what ends to be gone."""
    if _is_ready(gang) or not gang.size:
        return False
    waits = gang.count[TaskStatus.PENDING] + gang.count[TaskStatus.PIPELINED]
    return bool(waits) or held_count(gang) < gang.job.min_available


def _surplus(_member: Member, candidates: Sequence[Member]) -> list[Member]:
    """Of each gang as many as it has above its minimum, in the order given."""
    left: dict[str, int] = {}
    chosen = []
    for victim in candidates:
        uid = victim.job.job.uid
        ready = left.setdefault(uid, victim.job.ready_count)
        if ready > victim.job.job.min_available:
            left[uid] = ready - 1
            chosen.append(victim)
    return chosen


def _needed(member: Member, candidates: Sequence[Member]) -> list[Member]:
    surplus = {victim.task.uid for victim in _surplus(member, candidates)}
    return [victim for victim in candidates if victim.task.uid not in surplus]


def _pipelined(gang: Gang) -> Vote:
    is_promised = gang.is_pipelined and gang.roles_have(_PROMISED) and _groups(gang, _IS_PIPELINED)
    return Vote.PERMIT if is_promised else Vote.REJECT


def _subgroup_pipelined(group: SubGroup) -> Vote:
    return Vote.PERMIT if group.is_pipelined else Vote.REJECT


def _groups(gang: Gang, is_good: Callable[[SubGroup], bool]) -> bool:
    """Whether of each of its policies enough sub-groups are good."""
    return not gang.job.sub_groups or subgroups(gang).has_enough(is_good)
