"""Let jobs in: a gang whose least resources fit what the plugins allow becomes Inqueue (`volcano-spec` §4)."""

from collections import deque
from collections.abc import Mapping

from hekla.domain.phases import GangPhase
from hekla.engine.gangs import Gang
from hekla.engine.heap import Heap
from hekla.engine.model import Queue
from hekla.engine.points import Point
from hekla.engine.policy import Argument
from hekla.engine.session import Session


def execute(session: Session, _arguments: Mapping[str, Argument]) -> None:
    """One job of the first queue at a time; a job that is not let in holds up nobody behind it."""
    waiting: dict[str, deque[Gang]] = {}
    for gang in sorted((g for g in session.unsettled.values() if g.phase is GangPhase.PENDING), key=session.rank):
        waiting.setdefault(gang.job.queue, deque()).append(gang)
    queues: Heap[Queue] = Heap(session.queue_before, (session.queues[name] for name in sorted(waiting)))
    while len(queues):
        queue = queues.pop()
        gangs = waiting[queue.name]
        if not gangs:
            continue
        _consider(session, gangs.popleft())
        queues.push(queue)


def _consider(session: Session, gang: Gang) -> None:
    if gang.minimum is not None and not session.is_permitted(Point.JOB_ENQUEUEABLE, gang):
        return
    for hook in session.answers(Point.JOB_ENQUEUED):
        hook(gang)
    session.admit(gang)
    session.reasons.pop(gang.job.uid, None)
