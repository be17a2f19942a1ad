"""Dominant resource fairness: the job that holds the smaller share of the cluster goes first (`volcano-spec` §5.1).

With `enableHierarchy` also the queues, by their shares on a tree (`hierarchy`).
"""

from collections.abc import Sequence

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
    held = {uid: gang.allocated.copy() for uid, gang in session.gangs.items()}
    shares: dict[str, float] = {}

    def follow(member: Member, _row: int, sign: int) -> None:
        uid = member.job.job.uid
        if uid in held:
            held[uid] = held[uid] + sign * member.request
            shares.pop(uid, None)

    def share_of(uid: str) -> float:
        if uid not in shares:
            shares[uid] = share(held[uid], session.total)
        return shares[uid]

    def order(left: Gang, right: Gang) -> int:
        mine, other = share_of(left.job.uid), share_of(right.job.uid)
        return (mine > other) - (mine < other)

    def preemptable(member: Member, candidates: Sequence[Member]) -> list[Member]:
        mine = share(held[member.job.job.uid] + member.request, session.total)
        left: dict[str, Vector] = {}
        chosen = []
        for victim in candidates:
            uid = victim.job.job.uid
            left[uid] = left.get(uid, held[uid]) - victim.request
            other = share(left[uid], session.total)
            if mine < other or abs(mine - other) <= _SAME:
                chosen.append(victim)
        return chosen

    session.on_change.append(follow)
    session.register(Point.JOB_ORDER, option, order)
    session.register(Point.PREEMPTABLE, option, preemptable)
    if option.has("enableHierarchy"):
        _open_hierarchy(session, option, held)


def _open_hierarchy(session: Session, option: PluginOption, held: dict[str, Vector]) -> None:
    tree = Tree([session.gangs[uid] for uid in sorted(session.gangs)], session.queues, held, session.total)

    def follow(_member: Member, _row: int, _sign: int) -> None:
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
