"""Starving jobs take places from jobs of their queue, then from less urgent tasks of their own (`volcano-spec` §4).

A job commits its evictions only when they let it reach its minimum. The victims still hold their places; whoever they
went for is promised them, and is bound in a later cycle.
"""

from collections.abc import Callable, Mapping

import numpy as np

from hekla.engine import victims
from hekla.engine.columns import fits
from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.model import Queue, TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import Argument
from hekla.engine.session import Session
from hekla.engine.statement import Statement

Filter = Callable[[Member, Member], bool]
_EVICTABLE = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})
NAME = "preempt"


def execute(session: Session, _arguments: Mapping[str, Argument]) -> None:
    """Queue by queue: first between its jobs, then inside each of them."""
    starving: dict[str, list[Gang]] = {}
    found = session.valid_gangs(admitted_only=True)
    for gang in found:
        if session.is_starving(gang):
            starving.setdefault(gang.job.queue, []).append(gang)
    names = dict.fromkeys(gang.job.queue for gang in found)
    queues: Heap[Queue] = Heap(session.queue_before, (session.queues[name] for name in names))
    while len(queues):
        queue = queues.pop()
        gangs = starving.get(queue.name, [])
        _between_jobs(session, queue, gangs)
        for gang in gangs:
            _inside(session, queue, gang)


def _between_jobs(session: Session, queue: Queue, gangs: list[Gang]) -> None:
    waiting = Heap(session.job_before, gangs)
    while len(waiting):
        gang = waiting.pop()
        statement = Statement(session)
        tasks = _pending(session, gang)
        while len(tasks) and session.is_starving(gang):
            preempt(session, statement, queue, tasks.pop(), _of_other_jobs)
        if session.is_pipelined(gang):
            statement.commit()
        else:
            statement.discard()


def _inside(session: Session, queue: Queue, gang: Gang) -> None:
    tasks = _pending(session, gang)
    while len(tasks):
        statement = Statement(session)
        if not preempt(session, statement, queue, tasks.pop(), _of_the_same_job):
            return
        statement.commit()


def _pending(session: Session, gang: Gang) -> Heap[Member]:
    return Heap(session.task_before, (m for m in gang.members if m.status is TaskStatus.PENDING))


def _of_other_jobs(preemptor: Member, victim: Member) -> bool:
    return victim.job is not preemptor.job and victim.job.job.queue == preemptor.job.job.queue


def _of_the_same_job(preemptor: Member, victim: Member) -> bool:
    return victim.job is preemptor.job


def preempt(session: Session, statement: Statement, queue: Queue, member: Member, may: Filter) -> bool:
    """Promise the task the best node on which evictions make room. False: there is none, and nothing was changed."""
    places = session.places(member)
    if member.task.never_preempts or _has_its_room(session, member):
        return False
    places.catch_up()
    curable = places.curable()
    scores, listed = places.scores(curable), session.table.listed
    for row in listed[np.argsort(-scores[listed], kind="stable")].tolist():
        if curable[row] and _preempt_on(session, statement, queue, member, row, may):
            return True
    return False


def _has_its_room(session: Session, member: Member) -> bool:
    """The node that earlier evictions were for has the room, or will when those are gone: no more are needed.

    Volcano asks only whether the node would take such a task at all, so that a task whose room went to another never
    evicts again.
    """
    row = session.table.row_of.get(member.task.nominated_node)
    if row is None:
        return session.policy.follows_volcano and bool(member.task.nominated_node)
    places = session.places(member)
    has_room = places.room_on(row) is not None
    leaving = (m for m in session.residents[row].values() if m.status is TaskStatus.RELEASING)
    is_waiting = any(m.task.priority < member.task.priority for m in leaving)
    return has_room or is_waiting or (session.policy.follows_volcano and bool(places.allowed[row]))


def _preempt_on(session: Session, statement: Statement, queue: Queue, member: Member, row: int, may: Filter) -> bool:
    candidates = [m for m in victims.on_node(session, row) if _is_candidate(member, m) and may(member, m)]
    chosen = session.victims(Point.PREEMPTABLE, member, candidates)
    future = session.table.future(row)
    if not fits(member.request, future + victims.total(chosen, future)):
        return False
    order, mark = victims.in_order(session, chosen, member.job), len(statement)
    while len(order) and not _has_room(session, queue, member, row):
        statement.evict(order.pop(), NAME, member.job.job.uid)
    if not _has_room(session, queue, member, row):
        statement.discard(mark)
        return False
    if len(statement) > mark:
        session.nominated[member.task.uid] = session.table.nodes[row].name
    statement.place(member, row, now=False)
    return True


def _is_candidate(preemptor: Member, victim: Member) -> bool:
    if victim.status not in _EVICTABLE or not victim.task.preemptable:
        return False
    return victim.best_effort or not preemptor.best_effort


def _has_room(session: Session, queue: Queue, member: Member, row: int) -> bool:
    if not session.all_agree(Point.ALLOCATABLE, queue, member):
        return False
    places = session.places(member)
    places.catch_up()
    return bool(places.allowed[row] and fits(member.request, session.table.future(row)))
