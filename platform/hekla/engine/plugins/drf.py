"""Dominant resource fairness: the job that holds the smaller share of the cluster goes first (`volcano-spec` §5.1).

With `enableHierarchy` also the queues, by their shares on a tree (`hierarchy`).
"""

from collections.abc import Sequence

from hekla.engine import victims
from hekla.engine.columns import Vector, share
from hekla.engine.gangs import Gang, Member
from hekla.engine.hierarchy import Tree
from hekla.engine.model import Queue
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_SAME = 1e-6


def open_session(session: Session, option: PluginOption) -> None:
    """Order jobs by their share, which follows every placement of the session (promised ones count)."""
    shares: dict[int, tuple[Vector, float]] = {}
    """By row: gangs that hold the same mostly share it."""

    def share_of(gang: Gang) -> float:
        known = shares.get(id(gang.claimed))
        if known is None:
            known = shares[id(gang.claimed)] = gang.claimed, share(gang.claimed, session.total)
        return known[1]

    def preemptable(member: Member, candidates: Sequence[Member]) -> list[Member]:
        mine = share(member.job.claimed + member.request, session.total)
        left: dict[str, Vector] = {}
        chosen = []
        for victim in candidates:
            uid = victim.job.job.uid
            left[uid] = left.get(uid, victim.job.claimed) - victim.request
            other = share(left[uid], session.total)
            if mine < other or abs(mine - other) <= _SAME:
                chosen.append(victim)
        return chosen

    def share_with(gang: Gang, more: Sequence[Member], less: Sequence[Member]) -> float:
        held = gang.claimed + victims.total(more, session.total) - victims.total(less, session.total)
        return share(held, session.total)

    session.register(Point.JOB_ORDER, option, share_of, is_lasting=True)
    session.register(Point.JOB_SHARE, option, share_with)
    session.register(Point.PREEMPTABLE, option, preemptable, is_lasting=True)
    if option.has("enableHierarchy"):
        _open_hierarchy(session, option)


def _open_hierarchy(session: Session, option: PluginOption) -> None:
    held = {uid: gang.claimed for uid, gang in session.gangs.items()}
    tree = Tree([session.gangs[uid] for uid in sorted(session.gangs)], session.queues, held, session.total)

    def follow(member: Member, _row: int, _sign: int) -> None:
        held[member.job.job.uid] = member.job.claimed
        tree.renew()

    def reclaimable(member: Member, candidates: Sequence[Member]) -> list[Member]:
        mine = session.queues[member.job.job.queue]
        return [v for v in candidates if _compare_after(member, v, mine, session.queues[v.job.job.queue]) < 0]

    def _compare_after(member: Member, victim: Member, mine: Queue, other: Queue) -> float:
        """The order of the two queues if the victim's place went to the member."""
        taker, giver = member.job.job.uid, victim.job.job.uid
        before = {taker: held[taker], giver: held[giver]}
        held[taker] = held[taker] + member.request
        held[giver] = held[giver] - victim.request
        tree.renew()
        order = tree.compare(mine, other)
        held.update(before)
        tree.renew()
        return order

    session.on_change.append(follow)
    session.register(Point.QUEUE_ORDER, option, tree.compare)
    session.register(Point.RECLAIMABLE, option, reclaimable)
