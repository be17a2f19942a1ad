"""Tasks that ask for nothing go wherever the predicates allow (`volcano-spec` §4).

To Volcano such tasks count as placed before they are, so that it starts part of a gang of them when not all find a
place. Unless the policy follows Volcano, a gang starts when its minimum really has places.
"""

from collections.abc import Iterator, Mapping

from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.model import Queue, TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import Argument
from hekla.engine.session import Session

_WAITING = (TaskStatus.PENDING, TaskStatus.PIPELINED)


def execute(session: Session, _arguments: Mapping[str, Argument]) -> None:
    """One pass over queues, jobs and tasks in the order they have at the start."""
    for member in list(_in_order(session)):
        _place(session, member)
        if session.is_ready(member.job) and _has_its_minimum(session, member.job):
            _bind_all(session, member.job)


def _in_order(session: Session) -> Iterator[Member]:
    waiting: dict[str, list[tuple[Gang, list[Member]]]] = {}
    for gang in session.valid_gangs(among=_with_best_effort(session)):
        if free := [m for m in gang.members if m.best_effort and m.status in _WAITING]:
            waiting.setdefault(gang.job.queue, []).append((gang, free))
    queues: Heap[Queue] = Heap(session.queue_before, (session.queues[name] for name in waiting))
    while len(queues):
        for _gang, free in sorted(waiting[queues.pop().name], key=lambda pair: session.rank(pair[0])):
            yield from session.in_task_order(free)


def _with_best_effort(session: Session) -> Iterator[Gang]:
    return (gang for gang in session.candidates if gang.has_best_effort)


def _place(session: Session, member: Member) -> None:
    """Where there is room for one pod more; a place that was only promised is given up first."""
    if member.status is TaskStatus.PIPELINED:
        session.unplace(member)
    best = session.places(member).best()
    if best is not None and best[1]:
        session.place(member, best[0], TaskStatus.ALLOCATED)


def _has_its_minimum(session: Session, gang: Gang) -> bool:
    counts_gangs = bool(session.answers(Point.JOB_READY)) and not session.policy.follows_volcano
    return not counts_gangs or gang.ready_count >= gang.job.min_available


def _bind_all(session: Session, gang: Gang) -> None:
    for member in gang.members:
        if member.status is TaskStatus.ALLOCATED:
            session.bind(member)
