"""Let jobs in: a gang whose least resources fit what the plugins allow becomes Inqueue (`volcano-spec` §4)."""

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
    waiting: dict[str, Heap[Gang]] = {}
    for uid in sorted(session.gangs):
        gang = session.gangs[uid]
        if gang.phase is GangPhase.PENDING:
            waiting.setdefault(gang.job.queue, Heap(session.job_before)).push(gang)
    queues: Heap[Queue] = Heap(session.queue_before, (session.queues[name] for name in sorted(waiting)))
    while len(queues):
        queue = queues.pop()
        gangs = waiting[queue.name]
        if not len(gangs):
            continue
        _consider(session, gangs.pop())
        queues.push(queue)


def _consider(session: Session, gang: Gang) -> None:
    if gang.minimum is not None and not session.is_permitted(Point.JOB_ENQUEUEABLE, gang):
        return
    for hook in session.answers(Point.JOB_ENQUEUED):
        hook(gang)
    gang.phase = GangPhase.INQUEUE
    session.reasons.pop(gang.job.uid, None)
