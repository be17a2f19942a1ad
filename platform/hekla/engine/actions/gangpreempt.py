"""A starving gang takes places of less urgent gangs of its queue, in one domain, all at once (`volcano-spec` §4)."""

from collections.abc import Mapping
from functools import partial

from hekla.engine import backlog
from hekla.engine.aftermath import Aftermath
from hekla.engine.decisions import Barred, Cause
from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.in_vain import InVain
from hekla.engine.model import TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import Argument
from hekla.engine.session import Session
from hekla.engine.uprooting import Rules, Uprooting

NAME = "gangpreempt"
_EVICTABLE = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})


def execute(session: Session, arguments: Mapping[str, Argument]) -> None:
    """Queue by queue, the first starving job first."""

    def last_first(left: Gang, right: Gang, _for: Gang) -> float:
        return session.compare_jobs(right, left)

    uprooting = Uprooting(session, Rules(NAME, _may_go, _barred, last_first), arguments)
    found = session.valid_gangs()
    gangs = [gang for gang in found if gang.pending_count and session.is_starving(gang)]
    starving = backlog.by_queue(session, gangs)
    queues = Heap(session.queue_before, (session.queues[name] for name in starving))
    in_vain = InVain(session, Point.EVICTABLE)
    while len(queues):
        queue = queues.pop()
        while len(starving[queue.name]):
            in_vain.unless(starving[queue.name].pop(), partial(uprooting.make_room, queue))
    aftermath = Aftermath(session, NAME, Cause.PRIORITY, "nobody_preempted")
    for gang in aftermath.starving(gangs):
        if not aftermath.is_told(gang):
            aftermath.of_gang(gang, uprooting.why_nobody)


def _may_go(gang: Gang, victim: Member) -> bool:
    return _is_meant(gang, victim) and victim.job.job.priority < gang.job.priority


def _barred(gang: Gang, victim: Member) -> Barred | None:
    return Barred.NOT_LESS_URGENT if _is_meant(gang, victim) and not _may_go(gang, victim) else None


def _is_meant(gang: Gang, victim: Member) -> bool:
    is_other = victim.job is not gang and victim.job.job.queue == gang.job.queue
    return is_other and victim.status in _EVICTABLE
