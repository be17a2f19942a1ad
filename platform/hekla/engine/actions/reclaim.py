"""Queues take back what others borrowed: starving jobs evict tasks of other queues (`volcano-spec` §4).

Nodes are tried in the order in which they were given, without scores, and the first on which it works is taken.
"""

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from hekla.engine import backlog, victims
from hekla.engine.aftermath import Aftermath, Search
from hekla.engine.columns import fits
from hekla.engine.decisions import Barred, Cause
from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.in_vain import InVain
from hekla.engine.model import Queue, TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import Argument
from hekla.engine.session import Session
from hekla.engine.statement import Statement
from hekla.engine.verdicts import Verdict
from hekla.engine.victims import Grounds

NAME = "reclaim"


def execute(session: Session, _arguments: Mapping[str, Argument]) -> None:
    """One job of the first queue at a time; a queue that is over its share takes nothing.

    Unless Volcano is followed, gangs that must be close together are left to gangreclaim.
    """
    found = session.valid_gangs()
    gangs = [gang for gang in found if gang.count[TaskStatus.PENDING] and _may_scatter(session, gang)]
    waiting = backlog.by_queue(session, gangs)
    names = dict.fromkeys(gang.job.queue for gang in found)
    queues: Heap[Queue] = Heap(session.queue_before, (session.queues[name] for name in names))
    grounds, in_vain = Grounds(session), InVain(session, Point.RECLAIMABLE)
    while len(queues):
        queue = queues.pop()
        if session.any_says(Point.OVERUSED, queue) or not len(waiting.get(queue.name, ())):
            continue
        in_vain.unless(waiting[queue.name].pop(), partial(_reclaim_for, session, grounds, queue))
        queues.push(queue)
    _explain(session, grounds, gangs)


def _may_scatter(session: Session, gang: Gang) -> bool:
    return session.policy.follows_volcano or not gang.has_topology


def _explain(session: Session, grounds: Grounds, gangs: Iterable[Gang]) -> None:
    """Why no other queue gave anything back."""
    aftermath = Aftermath(session, NAME, Cause.QUOTA, "nobody_reclaimed")
    search = Search(Point.RECLAIMABLE, partial(_is_candidate, session), partial(_barred, session))
    for gang in aftermath.starving(gangs):
        if aftermath.is_told(gang):
            continue
        waiting = gang.pending()
        if aftermath.may_take_back(gang, waiting[:1]):
            aftermath.of_tasks(gang, waiting, partial(search.again, session, grounds))


def _reclaim_for(session: Session, grounds: Grounds, queue: Queue, gang: Gang) -> bool:
    """False: nothing was changed."""
    statement = Statement(session)
    tasks = Heap(session.task_before, (m for m in gang.members if m.status is TaskStatus.PENDING))
    while len(tasks) and session.is_starving(gang):
        member = tasks.pop()
        if not member.task.never_preempts and session.all_agree(Point.PREEMPTIVE, queue, [member]):
            _reclaim(session, grounds, statement, member)
    is_pipelined = session.is_pipelined(gang)
    if is_pipelined:
        statement.commit()
    else:
        statement.discard()
    return is_pipelined


def _reclaim(session: Session, grounds: Grounds, statement: Statement, member: Member) -> None:
    places = session.places(member)
    worth_trying, listed = places.curable() & ~grounds.barren(member), session.table.listed
    for row in listed[worth_trying[listed]].tolist():
        if _reclaim_on(session, grounds, statement, member, row):
            return


def _reclaim_on(session: Session, grounds: Grounds, statement: Statement, member: Member, row: int) -> bool:
    candidates = [m for m in grounds.on_node(row) if _is_candidate(session, member, m)]
    verdict = session.victims(Point.RECLAIMABLE, member, candidates) if candidates else Verdict([])
    room = session.table.future(row)
    if not candidates or not fits(member.request, room + victims.total(verdict.victims, room)):
        grounds.note_barren(member, row)
        return False
    order = victims.in_order(session, verdict.victims, member.job)
    freed = np.zeros_like(room)
    while len(order) and not fits(member.request, room + freed):
        victim = order.pop()
        statement.evict(victim, NAME, member.job.job.uid, verdict.plugins)
        freed += victim.request
    if freed.any():
        session.nominated[member.task.uid] = session.table.nodes[row].name
    statement.place(member, row, now=False)
    return True


def _barred(session: Session, reclaimer: Member, victim: Member) -> Barred | None:
    queue = session.queues[victim.job.job.queue]
    if queue.name == reclaimer.job.job.queue or victim.status is not TaskStatus.RUNNING:
        return None
    if not queue.reclaimable:
        return Barred.QUEUE_NOT_RECLAIMABLE
    return None if victim.task.preemptable else Barred.NOT_PREEMPTABLE


def _is_candidate(session: Session, reclaimer: Member, victim: Member) -> bool:
    queue = session.queues[victim.job.job.queue]
    is_foreign = queue.name != reclaimer.job.job.queue and queue.reclaimable
    return is_foreign and victim.status is TaskStatus.RUNNING and victim.task.preemptable
