"""A queue takes back what others borrowed for a whole gang, in one domain and all at once (`volcano-spec` §4)."""

from collections.abc import Mapping
from functools import partial

from hekla.engine import backlog
from hekla.engine.aftermath import Aftermath
from hekla.engine.decisions import Barred, Cause
from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.in_vain import InVain
from hekla.engine.model import Queue, TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import Argument
from hekla.engine.session import Session
from hekla.engine.uprooting import Rules, Uprooting

NAME = "gangreclaim"


def execute(session: Session, arguments: Mapping[str, Argument]) -> None:
    """One job of the first queue at a time; a queue that is over its share takes nothing."""
    uprooting = Uprooting(session, _rules(session), arguments)
    found = session.valid_gangs()
    gangs = [gang for gang in found if gang.pending_count and session.is_starving(gang)]
    starving = backlog.by_queue(session, gangs)
    queues = Heap(session.queue_before, (session.queues[name] for name in starving))
    in_vain = InVain(session, Point.EVICTABLE)
    while len(queues):
        queue = queues.pop()
        if session.any_says(Point.OVERUSED, queue) or not len(starving[queue.name]):
            continue
        in_vain.unless(starving[queue.name].pop(), partial(_take_back, session, uprooting, queue))
        queues.push(queue)
    aftermath = Aftermath(session, NAME, Cause.QUOTA, "nobody_reclaimed")
    for gang in aftermath.starving(gangs):
        if not aftermath.is_told(gang) and aftermath.may_take_back(gang, gang.pending()):
            aftermath.of_gang(gang, uprooting.why_nobody)


def _take_back(session: Session, uprooting: Uprooting, queue: Queue, gang: Gang) -> bool:
    """False: nothing was changed."""
    return session.all_agree(Point.PREEMPTIVE, queue, gang.pending()) and uprooting.make_room(queue, gang)


def _rules(session: Session) -> Rules:
    queues = session.queues

    def may_go(gang: Gang, victim: Member) -> bool:
        return is_foreign(gang, victim) and queues[victim.job.job.queue].reclaimable

    def barred(gang: Gang, victim: Member) -> Barred | None:
        return Barred.QUEUE_NOT_RECLAIMABLE if is_foreign(gang, victim) and not may_go(gang, victim) else None

    def is_foreign(gang: Gang, victim: Member) -> bool:
        return victim.job.job.queue != gang.job.queue and victim.status is TaskStatus.RUNNING

    def compare(left: Gang, right: Gang, of: Gang) -> float:
        mine, other = queues[left.job.queue], queues[right.job.queue]
        if mine is other:
            return session.compare_jobs(right, left)
        sign = session.compare(Point.VICTIM_QUEUE_ORDER, mine, other, queues[of.job.queue])
        return sign or (-1 if session.queue_before(other, mine) else 1)

    return Rules(NAME, may_go, barred, compare)
