"""Tasks that ask for nothing go wherever the predicates allow (`volcano-spec` §4)."""

from collections.abc import Mapping

from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.model import TaskStatus
from hekla.engine.policy import Argument
from hekla.engine.session import Session
from hekla.engine.statement import bind


def execute(session: Session, _arguments: Mapping[str, Argument]) -> None:
    """One pass over queues, jobs and tasks in their order."""
    gangs: Heap[Gang] = Heap(session.job_before, session.valid_gangs(admitted_only=True))
    while len(gangs):
        gang = gangs.pop()
        free = [m for m in gang.members if m.best_effort and m.status is TaskStatus.PENDING]
        tasks: Heap[Member] = Heap(session.task_before, free)
        while len(tasks):
            _place(session, tasks.pop())
        if session.is_ready(gang):
            _bind_all(session, gang)


def _place(session: Session, member: Member) -> None:
    best = session.places(member).best()
    if best is not None and best[1]:
        session.place(member, best[0], TaskStatus.ALLOCATED)


def _bind_all(session: Session, gang: Gang) -> None:
    for member in gang.members:
        if member.status is TaskStatus.ALLOCATED:
            bind(session, member)
