"""Dominant resource fairness: the job that holds the smaller share of the cluster goes first (`volcano-spec` §5.1)."""

from collections.abc import Sequence

from hekla.engine.columns import Vector, share
from hekla.engine.gangs import Gang, Member
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_SAME = 1e-6


def open_session(session: Session, option: PluginOption) -> None:
    """Order jobs by their share, which follows every placement of the session (promised ones count)."""
    allocated = {uid: gang.allocated.copy() for uid, gang in session.gangs.items()}
    shares = {uid: share(amount, session.total) for uid, amount in allocated.items()}

    def follow(member: Member, _row: int, sign: int) -> None:
        uid = member.job.job.uid
        allocated[uid] += sign * member.request
        shares[uid] = share(allocated[uid], session.total)

    def order(left: Gang, right: Gang) -> int:
        mine, other = shares[left.job.uid], shares[right.job.uid]
        return (mine > other) - (mine < other)

    def preemptable(member: Member, candidates: Sequence[Member]) -> list[Member]:
        mine = share(allocated[member.job.job.uid] + member.request, session.total)
        left: dict[str, Vector] = {}
        chosen = []
        for victim in candidates:
            uid = victim.job.job.uid
            left[uid] = left.get(uid, allocated[uid]) - victim.request
            other = share(left[uid], session.total)
            if mine < other or abs(mine - other) <= _SAME:
                chosen.append(victim)
        return chosen

    session.on_change.append(follow)
    session.register(Point.PREEMPTABLE, option, preemptable)
    session.register(Point.JOB_ORDER, option, order)
