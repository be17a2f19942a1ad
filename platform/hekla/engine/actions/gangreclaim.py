"""A queue takes back what others borrowed for a whole gang, in one domain and all at once (`volcano-spec` §4)."""

from collections.abc import Mapping

from hekla.engine.aftermath import Aftermath
from hekla.engine.decisions import Barred, Cause
from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.model import TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import Argument
from hekla.engine.session import Session
from hekla.engine.uprooting import Rules, Uprooting

NAME = "gangreclaim"


def execute(session: Session, arguments: Mapping[str, Argument]) -> None:
    """One job of the first queue at a time; a queue that is over its share takes nothing."""
    uprooting = Uprooting(session, _rules(session), arguments)
    starving: dict[str, Heap[Gang]] = {}
    gangs: list[Gang] = []
    for gang in session.valid_gangs(admitted_only=True):
        if gang.pending() and session.is_starving(gang):
            starving.setdefault(gang.job.queue, Heap(session.job_before)).push(gang)
            gangs.append(gang)
    queues = Heap(session.queue_before, (session.queues[name] for name in starving))
    while len(queues):
        queue = queues.pop()
        if session.any_says(Point.OVERUSED, queue) or not len(starving[queue.name]):
            continue
        gang = starving[queue.name].pop()
        if session.all_agree(Point.PREEMPTIVE, queue, gang.pending()):
            uprooting.make_room(queue, gang)
        queues.push(queue)
    aftermath = Aftermath(session, NAME, Cause.QUOTA, "nobody_reclaimed")
    for gang in aftermath.starving(gangs):
        if aftermath.may_take_back(gang, gang.pending()):
            aftermath.of_gang(gang, uprooting.why_nobody)


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
