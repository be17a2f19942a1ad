"""Queues own what they deserve, borrow up to their bound, and take back by reclaim (`volcano-spec` §5.3).

With `enableHierarchy` queues form a tree, and each bound above a queue holds for it too.
"""

from collections.abc import Sequence

from hekla.engine.gangs import Member
from hekla.engine.model import Queue
from hekla.engine.plugins.capacity import books
from hekla.engine.plugins.capacity.admission import Admission
from hekla.engine.plugins.capacity.devices import Demand
from hekla.engine.plugins.capacity.order import Order
from hekla.engine.plugins.capacity.reclaim import Reclaim
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_LEVEL = "ancestorReclaimLevel"


def open_session(session: Session, option: PluginOption) -> None:
    """Count, and speak for the counts."""
    is_tree = option.has("enableHierarchy")
    demand = Demand(session, option)
    accounts = books.of_session(session, demand, is_tree=is_tree)
    admission, order = Admission(session, accounts, demand), Order(accounts)
    reclaim = Reclaim(session, accounts, option.whole(_LEVEL, 0) if is_tree else 0)
    weigh_all = not session.policy.follows_volcano

    def follow(member: Member, _row: int, sign: int) -> None:
        books.follow(accounts, member, sign * demand.of(member), weigh_all=weigh_all)

    def share_with(queue: Queue, more: Sequence[Member], less: Sequence[Member]) -> float:
        return accounts[queue.name].share_with(demand.together(more) - demand.together(less))

    session.on_change.append(follow)
    session.register(Point.QUEUE_ORDER, option, order.of_queues)
    session.register(Point.QUEUE_SHARE, option, share_with)
    session.register(Point.QUEUE_ACCOUNT, option, lambda queue: accounts[queue.name])
    session.register(Point.VICTIM_QUEUE_ORDER, option, order.of_victims)
    session.register(Point.ALLOCATABLE, option, admission.allocatable, is_lasting=True)
    session.register(Point.WHY_NOT_ALLOCATABLE, option, admission.why_not_allocatable)
    session.register(Point.JOB_ENQUEUEABLE, option, admission.enqueueable, is_lasting=True)
    session.register(Point.JOB_ENQUEUED, option, admission.enqueued)
    session.register(Point.PREEMPTIVE, option, reclaim.preemptive, is_lasting=True)
    session.register(Point.RECLAIMABLE, option, reclaim.reclaimable, is_lasting=True)
    session.register(Point.EVICTABLE, option, reclaim.evictable, is_lasting=True)
