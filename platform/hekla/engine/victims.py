"""Who may have to go from a node, and in what order (`volcano-spec` §3.2, §4)."""

from collections.abc import Iterable, Sequence

import numpy as np

from hekla.engine.columns import Vector
from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.points import Point
from hekla.engine.session import Session


def on_node(session: Session, row: int) -> list[Member]:
    """The tasks of known jobs on a node, by uid."""
    residents = session.residents[row]
    return [residents[uid] for uid in sorted(residents) if residents[uid].job.job.uid in session.gangs]


def total(members: Iterable[Member], like: Vector) -> Vector:
    """What they hold together."""
    return sum((member.request for member in members), np.zeros_like(like))


def in_order(session: Session, victims: Sequence[Member], preemptor: Gang) -> Heap[Member]:
    """Of a queue the last job first, of a job or of equal jobs the last task; of other queues as the plugins say."""

    def before(left: Member, right: Member) -> bool:
        mine, other = left.job.job.queue, right.job.job.queue
        if mine != other:
            return _queue_first(session, mine, other, preemptor.job.queue)
        if left.job is not right.job and (sign := session.compare_jobs(left.job, right.job)):
            return sign > 0
        return session.task_before(right, left)

    return Heap(before, victims)


def _queue_first(session: Session, left: str, right: str, of: str) -> bool:
    queues = session.queues
    if sign := session.compare(Point.VICTIM_QUEUE_ORDER, queues[left], queues[right], queues[of]):
        return sign < 0
    return session.queue_before(queues[right], queues[left])
