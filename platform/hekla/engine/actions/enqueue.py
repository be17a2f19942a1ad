"""Let jobs in: a gang whose least resources fit what the plugins allow becomes Inqueue (`volcano-spec` §4)."""

from collections.abc import Mapping

from hekla.domain.phases import GangPhase
from hekla.engine import backlog
from hekla.engine.gangs import Gang
from hekla.engine.heap import Heap, Waiting
from hekla.engine.model import Queue
from hekla.engine.points import Point
from hekla.engine.policy import Argument
from hekla.engine.session import Session


def execute(session: Session, _arguments: Mapping[str, Argument]) -> None:
    """One job of the first queue at a time; a job that is not let in holds up nobody behind it."""
    singles, lines = backlog.standing(session)
    waiting = backlog.by_queue(session, filter(_waits, singles), (line for line in lines if _waits(line[0])))
    for name in [name for name in waiting if session.queues[name].is_draining]:
        _keep_out(session, waiting.pop(name))
    queues: Heap[Queue] = Heap(session.queue_before, (session.queues[name] for name in sorted(waiting)))
    while len(queues):
        queue = queues.pop()
        gangs = waiting[queue.name]
        if not len(gangs):
            continue
        gang = gangs.pop()
        if _is_permitted(session, gang):
            _let_in(session, gang)
        elif session.is_lasting(Point.JOB_ENQUEUEABLE):
            session.note_alike(gang, gangs.behind())
        queues.push(queue)


def _waits(gang: Gang) -> bool:
    return gang.phase is GangPhase.PENDING


def _keep_out(session: Session, gangs: Waiting[Gang]) -> None:
    while len(gangs):
        session.is_kept_out(gangs.pop())


def _is_permitted(session: Session, gang: Gang) -> bool:
    return gang.minimum is None or session.is_permitted(Point.JOB_ENQUEUEABLE, gang)


def _let_in(session: Session, gang: Gang) -> None:
    for hook in session.answers(Point.JOB_ENQUEUED):
        hook(gang)
    session.admit(gang)
    session.reasons.pop(gang.job.uid, None)
